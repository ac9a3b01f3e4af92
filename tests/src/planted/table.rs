//! Every planted fault, and the test that must see it.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What production code asks for, and `cargo planted NAME`.
    pub name: &'static str,
    /// The package whose tests must notice; it has a feature `planted`.
    pub package: &'static str,
    pub breaks: &'static str,
    /// Part of the names of the tests of which at least one must fail.
    pub filter: &'static str,
}

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "sample",
        package: "tests",
        breaks: "nothing real: shows that the runner itself works",
        filter: "planted::tests::the_sample_is_whole",
    },
    Fault {
        name: "late_close_removes_new",
        package: "base",
        breaks: "a late close removes the newer connection's entry",
        filter: "generation::",
    },
    Fault {
        name: "certificate_not_required",
        package: "net",
        breaks: "a node that shows no certificate is let in",
        filter: "tls::tests::who_shows_no_certificate_is_nobody",
    },
    Fault {
        name: "identity_not_compared",
        package: "net",
        breaks: "a hello may say something else than the certificate",
        filter: "hello::tests::a_node_speaks_only_for_itself",
    },
    Fault {
        name: "renewal_ignored",
        package: "node",
        breaks: "new certificate files are read and not used",
        filter: "tls::tests::changed_files_are_used",
    },
    Fault {
        name: "backend_ignores_fences",
        package: "tables",
        breaks: "a provider that was evicted writes late",
        filter: "who_was_evicted_writes_nothing",
    },
    Fault {
        name: "backend_forgets_grants",
        package: "tables",
        breaks: "a record is overwritten under an earlier grant than the one it has",
        filter: "a_record_that_was_granted_since",
    },
    Fault {
        name: "arbiter_ignores_seq",
        package: "global-cache",
        breaks: "a late word about an earlier grant ends the present one",
        filter: "arbiter::tests::acquiring::what_is_late_or_doubled",
    },
    Fault {
        name: "arbiter_grants_twice_by_one_number",
        package: "global-cache",
        breaks: "who asks again for what it has let go of loses it by the word that let go of the first",
        filter: "arbiter::tests::acquiring::what_is_granted_again",
    },
    Fault {
        name: "arbiter_never_says_reload",
        package: "global-cache",
        breaks: "a provider goes on with what it had before others changed it",
        filter: "arbiter::tests::acquiring::",
    },
    Fault {
        name: "arbiter_forgets_the_evicted",
        package: "global-cache",
        breaks: "who loads next does not hear whose late writes to refuse",
        filter: "arbiter::tests::leaving::the_silent_lose_everything",
    },
    Fault {
        name: "hot_records_unbounded",
        package: "global-cache",
        breaks: "each record that was ever waited for is counted, whatever that takes",
        filter: "hot::tests::the_hottest_is_found",
    },
    Fault {
        name: "store_skips_checksums",
        package: "store",
        breaks: "a damaged record is handed out",
        filter: "seal::",
    },
    Fault {
        name: "store_acknowledges_before_flush",
        package: "store",
        breaks: "a batch is acknowledged before it is on the disk",
        filter: "what_sled_acknowledged_survives_kill_9",
    },
    Fault {
        name: "store_forgets_silently",
        package: "store",
        breaks: "a store opens that has lost what it had flushed",
        filter: "damage_is_an_error",
    },
    Fault {
        name: "directory_answers_before_saving",
        package: "service-manager",
        breaks: "a directory answers what it has not saved",
        filter: "with_a_store_a_restart_forgets_nothing",
    },
    Fault {
        name: "directory_drops_offline_notices",
        package: "service-manager",
        breaks: "what a node leaves behind is forgotten when the first one declines it",
        filter: "others_are_asked_in_turn",
    },
    Fault {
        name: "directory_tells_each_flap",
        package: "service-manager",
        breaks: "followers hear of every change of a name that flaps",
        filter: "a_flapping_name_is_told_of_about_ten_times_a_second",
    },
    Fault {
        name: "directory_repeats_ids",
        package: "service-manager",
        breaks: "a block of ids is given twice",
        filter: "ids_are_given_once",
    },
    simulated("link_sid_reused", "a linkd gives a closed session's number to the next one"),
    simulated("static_bind_overwrites", "a first request rebinds static modules that are bound already"),
    simulated("not_sent_is_silent", "a request that a full outbox refuses is not answered"),
    simulated("choice_ignores_overload", "an overloaded or disabled provider is chosen"),
    simulated("view_forgets_removals", "what vanished while a node was away stays in its view"),
    simulated(
        "view_drops_while_warming",
        "a directory that has just restarted makes nodes forget what they knew",
    ),
    simulated("view_ignores_gaps", "a lost change of the directory is not noticed"),
    simulated("session_requests_overlap", "two requests of one session run at once"),
    simulated("link_broken_overtakes", "the end of a session overtakes its requests"),
    simulated("kicked_session_executes", "a kicked session goes on executing"),
    simulated("in_flight_unbounded", "a session may have any number of requests waiting"),
    simulated("directory_repeats_epochs", "a new start gets the epoch of the one before"),
    simulated(
        "directory_keeps_low_epochs",
        "after its clock was set back the directory gives epochs it gave before",
    ),
    simulated("directory_forgets_its_epochs", "a directory with a store gives epochs again after a restart"),
    simulated("directory_forgets_its_ids", "a directory with a store gives ids again after a restart"),
    simulated("claims_given_while_warming", "a directory that forgot gives away what somebody may hold"),
    simulated("claims_outlive_their_node", "what ends with a node is nobody's when that node is gone"),
    simulated("directory_hands_over_at_once", "what a node left is handed over before it could come back"),
    simulated("directory_asks_again", "what was taken over is handed over once more"),
    simulated("directory_admits_duplicates", "a second start is let in while the first one answers"),
    simulated(
        "directory_blames_after_a_pause",
        "a directory that slept gives up everybody it could not hear",
    ),
    in_package(
        "unbound_are_not_told",
        "linkd",
        "who only had a request at a lost provider hears nothing of it",
        "binds::whoever_only_had",
    ),
    simulated("owed_is_forgotten", "the requests at a lost provider are never answered"),
    simulated("kick_not_repeated", "a kick whose linkd can't be reached at once is forgotten"),
    in_package(
        "kicked_session_returns",
        "linkstead",
        "a kicked session runs on over the next connection",
        "links::a_session_that_is_being_kicked",
    ),
    in_package("overload_flaps", "linkstead", "a level of overload is left at once", "a_level_is_left"),
    simulated("old_connection_stays", "a provider's old connection stays beside its new one"),
    simulated("ring_by_connection", "each linkd places keys by its own connections"),
    simulated("idle_never_closes", "a half-open client is kept for ever"),
    simulated("linkds_never_redials", "a provider never comes back to a linkd it lost"),
    simulated("directory_closes_by_key", "the close of an old session disconnects the new one"),
    in_turmoil(
        "dial_gives_up",
        "a node that can't be dialled once is never dialled again",
        "a_cut_between_linkd_and_provider_heals",
    ),
    in_turmoil(
        "silence_unnoticed",
        "a connection that carries nothing any more stays for ever",
        "a_cut_between_linkd_and_provider_heals",
    ),
    in_turmoil(
        "directory_never_rejoined",
        "a node that lost the directory never looks for it again",
        "nobody_notices_that_the_directory_is_lost",
    ),
    in_turmoil(
        "redial_by_chance",
        "how long a node waits depends on more than the seed",
        "a_cut_between_linkd_and_provider_heals",
    ),
    in_package("rate_not_enforced", "linkd", "a session sends as fast as it likes", "a_flood_of_keep_alives"),
    in_package(
        "broadcast_ignores_version",
        "linkd",
        "a broadcast for one version reaches clients of every version",
        "a_broadcast_goes_out_in_turns",
    ),
    in_package(
        "proxy_address_ignored",
        "linkd",
        "the balancer's address is taken for the client's",
        "behind_a_balancer_the_real_address_counts",
    ),
    in_package(
        "directory_claims_twice",
        "service-manager",
        "a key that somebody holds is given to another",
        "claims::",
    ),
    in_package(
        "account_changes",
        "linkd",
        "a second Auth changes the account of a session",
        "the_account_of_a_session_never_changes",
    ),
    in_package(
        "mailbox_keeps_late_letters",
        "linkd",
        "a letter to a worker that ends meanwhile is kept, and its sender waits for ever",
        "a_letter_to_a_box_that_closes",
    ),
    in_package("ticket_not_consumed", "linkd", "a ticket is good for more than one login", "auth::"),
    in_package(
        "slots_forget_their_uses",
        "linkd",
        "slots that were given back give the sids of before again",
        "a_mass_leave_gives_the_memory_back",
    ),
    in_package(
        "node_head_believed",
        "fuzz",
        "a node frame's head may be longer than the frame",
        "the_corpus_and_its_neighbours",
    ),
    in_package("retired_keys_count", "wire", "tickets of a retired key are accepted", "keys_overlap"),
    in_package(
        "handshake_twice",
        "linkd",
        "a second handshake message resets the session",
        "a_second_handshake",
    ),
    in_package(
        "late_dispatch_runs",
        "linkstead",
        "a request that comes after its session's end still runs",
        "the_end_of_a_session_comes_after_its_requests",
    ),
    in_package(
        "link_ref_ignores_epoch",
        "linkstead",
        "a session of an earlier start of a linkd is taken for one of this",
        "a_session_of_an_earlier_start_is_never_reached",
    ),
    in_package(
        "directory_removal_cuts",
        "linkstead",
        "a linkd that the directory lost is cut off",
        "a_linkd_that_is_listed_no_longer_keeps",
    ),
    in_package(
        "bind_before_announce",
        "linkstead",
        "modules are bound before the provider has said who it is",
        "each_worker_is_told_who_what_and_what_else",
    ),
    in_package(
        "full_outbox_loses_replies",
        "linkstead",
        "a reply for which there is no room is lost",
        "a_linkd_that_reads_slowly_loses_nothing",
    ),
    in_package(
        "types_forget_packed",
        "linkstead",
        "the types for other languages don't say how lists of numbers travel",
        "types::tests::protocols_and_the_messages",
    ),
    in_package(
        "types_take_any_of_a_name",
        "linkstead",
        "of two messages of one name, a protocol is given either",
        "types::tests::what_cannot_be_described",
    ),
    in_package(
        "overload_told_late",
        "linkstead",
        "overload is reported at the next slow beat",
        "what_matters_is_told_at_once",
    ),
    in_package(
        "lifecycle_counts_while_draining",
        "node",
        "a draining node counts what it refuses as in flight",
        "the_order_is_fixed_and_requests_end_first",
    ),
    in_package(
        "lifecycle_hurry_skips_save",
        "node",
        "a second signal skips the save",
        "a_second_signal_skips_the_waits_and_still_saves",
    ),
    in_package(
        "client_drops_when_full",
        "client",
        "a client whose queue is full loses pushes silently",
        "events::a_full_queue",
    ),
    in_package(
        "client_reverses_pushes",
        "client",
        "pushes are handed out in another order",
        "events::a_thousand",
    ),
    of_records(
        "cache_skips_raise_fence",
        "a record is read before who was evicted can't write it any more",
        "records_hold_when_providers_crash",
    ),
    in_package(
        "cache_keeps_stale_copies",
        "tables",
        "what is in memory is used though the grant says to read it again",
        "a_grant_that_says_so_is_read_again",
    ),
    of_records(
        "cache_reduces_before_the_flush",
        "a record is handed over before what was changed in it is written",
        "records_hold_while_everybody_wants_the_same",
    ),
    of_records(
        "commit_skips_validation",
        "a commit does not look whether what it read has changed",
        "records_hold_while_everybody_wants_the_same",
    ),
    of_records(
        "commit_ignores_the_lease",
        "a commit is made after the lease has run out",
        "records_hold_when_providers_stand_still",
    ),
    of_records(
        "flush_outlives_the_session",
        "what was committed in a lost session is written under the fence of the next one",
        "records_hold_when_providers_stand_still",
    ),
    of_records(
        "arbiter_grants_before_reduced",
        "a record is granted while those who hold it are still asked to reduce",
        "records_hold_while_everybody_wants_the_same",
    ),
    in_package(
        "cache_ignores_seq",
        "tables",
        "what was read under an earlier grant is taken for the present one",
        "permit::tests::ends::what_was_read_under_an_earlier_grant",
    ),
    in_package(
        "client_counts_no_late_answers",
        "client",
        "an answer nobody waits for leaves no trace",
        "requests::a_late_answer",
    ),
    in_package(
        "client_leaves_requests_waiting",
        "client",
        "requests in flight outlive their connection",
        "requests::the_end_of_the_connection",
    ),
];

/// A fault that the simulator of records must see, in a test of this name.
const fn of_records(name: &'static str, breaks: &'static str, filter: &'static str) -> Fault {
    Fault { name, package: "tests", breaks, filter }
}

/// A fault that the simulator must see.
const fn simulated(name: &'static str, breaks: &'static str) -> Fault {
    Fault { name, package: "tests", breaks, filter: "seeds_keep_every_promise" }
}

/// A fault that the shells in turmoil must show.
const fn in_turmoil(name: &'static str, breaks: &'static str, filter: &'static str) -> Fault {
    Fault { name, package: "tests", breaks, filter }
}

/// A fault that a test of its own package must see.
const fn in_package(
    name: &'static str,
    package: &'static str,
    breaks: &'static str,
    filter: &'static str,
) -> Fault {
    Fault { name, package, breaks, filter }
}
