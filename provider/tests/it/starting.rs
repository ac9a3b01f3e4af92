//! How a provider introduces itself, and what keeps it from starting.

use linkstead::{Builder, Choice, Config, Cx, Linkds, ModuleConfig, NodeId, code, module};
use wire::link::{self, message};

use crate::game::{Room, Word, game};
use crate::linkd::{Gateway, start};

/// Holds: Z-19, Z-20, Z-21.
#[tokio::test]
async fn each_worker_is_told_who_what_and_what_else_in_that_order() {
    let gateway = Gateway::new("linkd-1", 3).await;
    let (builder, _stage) = game();
    let mut config = Config { server_id: 4, region: "eu".into(), ..Config::default() };
    config.modules.insert("Hall".into(), ModuleConfig { choice: Some(Choice::Load) });
    let (running, _list) = start(builder, config, vec![gateway.listed(2)]).await;
    let mut workers = Vec::new();
    for _ in 0..2 {
        let mut linkd = gateway.accept().await;
        let (announce, bind, subscribe) = linkd.introduce().await;
        let expected = message::Announce {
            server_id: 4,
            app_version: 1 << 48,
            disabled: false,
            region: "eu".into(),
            prefix: "module/".into(),
            authenticator: false,
        };
        assert_eq!(announce, expected);
        let hall = &bind.modules[0];
        assert_eq!((bind.modules.len(), hall.id, hall.name.as_str(), hall.dynamic), (1, 7, "Hall", false));
        assert_eq!((hall.choice.as_str(), hall.queue_max), ("load", 64));
        let echo = hall.protocols.iter().find(|protocol| protocol.name == "Hall.echo").unwrap();
        assert_eq!((echo.id, echo.route_by, echo.level), (base::hash::hash32("Hall.echo"), 1, 2));
        let room = &subscribe.unwrap().modules[0];
        assert_eq!(
            (room.id, room.dynamic, room.choice.as_str(), room.protocols[0].level),
            (8, true, "request", 3)
        );
        workers.push((linkd.link.peer.worker, linkd));
    }
    running.ready().await;
    workers.sort_by_key(|(worker, _)| *worker);
    assert_eq!(workers.iter().map(|(worker, _)| *worker).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(running.status()["links"].as_array().map(Vec::len), Some(2));
}

/// A refused step is tried again, and nothing after it is said before it is accepted.
///
/// Holds: Z-21.
#[tokio::test]
async fn a_refused_announcement_is_repeated_and_the_rest_waits_for_it() {
    let gateway = Gateway::new("linkd-1", 3).await;
    let (builder, _stage) = game();
    let (running, _list) = start(builder, Config::default(), vec![gateway.listed(1)]).await;
    let mut linkd = gateway.accept().await;
    linkd.refuse(link::ANNOUNCE, &code::DUPLICATE_SERVER_ID).await;
    assert!(!running.is_ready());
    linkd.call::<message::Announce>(link::ANNOUNCE).await;
    linkd.refuse(link::BIND, &code::CHOICE_CLASH).await;
    linkd.call::<message::Bind>(link::BIND).await;
    linkd.call::<message::Subscribe>(link::SUBSCRIBE).await;
    running.ready().await;
}

/// Holds: Z-25.
#[tokio::test]
async fn load_reports_are_numbered_and_carry_the_proposals() {
    let (builder, _stage) = game();
    let config = Config { propose_max_online: 50, max_online_new: 5, ..Config::default() };
    let gateway = Gateway::new("linkd-1", 3).await;
    let (_running, _list) = start(builder, config, vec![gateway.listed(1)]).await;
    let mut linkd = gateway.accept().await;
    linkd.introduce().await;
    // More logins in a second than wanted: told at once.
    (1..=6).for_each(|sid| linkd.open(sid, &format!("player-{sid}"), None));
    let mut last = 1;
    loop {
        let frame = linkd.frame().await;
        assert_eq!(frame.meta.kind, link::LOAD);
        let load: message::Load = prost::Message::decode(frame.body).unwrap();
        assert!(load.seq > last);
        last = load.seq;
        assert_eq!((load.propose_max_online, load.max_online_new, load.overload), (50, 5, 0));
        if load.online == 6 {
            assert_eq!(load.online_new, 6);
            break;
        }
    }
}

#[tokio::test]
async fn a_provider_that_can_not_work_does_not_start() {
    let refused = async |builder: linkstead::Builder, config: Config| {
        let linkds = Linkds::Fixed {
            epoch: base::Epoch(1),
            linkds: tokio::sync::watch::channel(Default::default()).1,
        };
        let env = linkstead::Env::new("test", NodeId::new("game-1").unwrap(), linkds);
        builder.start(config, env, Default::default()).await.err().expect("it must not start").to_string()
    };
    let (builder, _stage) = game();
    let text = refused(builder, Config { io_workers: 0, ..Config::default() }).await;
    assert!(text.starts_with("provider.io_workers: "), "{text}");
    let text = refused(linkstead::provider("empty"), Config::default()).await;
    assert!(text.contains("no modules"), "{text}");
    let (builder, _stage) = game();
    let text = refused(builder.module(|_| Ok(Room)), Config::default()).await;
    assert!(text.contains("module Room (8) and module Room (8)"), "{text}");
    let failing =
        linkstead::provider("game").module::<Room>(|_| Err(linkstead::Error::code(1, "no map file")));
    let text = refused(failing, Config::default()).await;
    assert!(text.contains("module Room can't be built: code 1: no map file"), "{text}");
}

/// What two linkds are asked at the same time they answer each for itself, the later one first: who refuses is asked again,
/// and nobody else.
///
/// Holds: Q45.
#[tokio::test]
async fn each_linkd_answers_for_itself() {
    let gateways = [Gateway::new("linkd-1", 3).await, Gateway::new("linkd-2", 4).await];
    let listed = gateways.iter().map(|gateway| gateway.listed(1)).collect();
    let (builder, _stage) = game();
    let (running, _list) = start(builder, Config::default(), listed).await;
    let (mut one, mut two) = (gateways[0].accept().await, gateways[1].accept().await);
    one.call::<message::Announce>(link::ANNOUNCE).await;
    two.call::<message::Announce>(link::ANNOUNCE).await;
    let (first, second) = (one.next().await, two.next().await);
    assert_eq!((first.meta.kind, second.meta.kind), (link::BIND, link::BIND));
    assert_eq!(first.body, second.body);
    two.link.refuse(second.meta.call, &code::CHOICE_CLASH, "the test says so").unwrap();
    one.link.reply(first.meta.call, &()).unwrap();
    one.call::<message::Subscribe>(link::SUBSCRIBE).await;
    two.call::<message::Bind>(link::BIND).await;
    two.call::<message::Subscribe>(link::SUBSCRIBE).await;
    running.ready().await;
    assert_eq!(one.frame().await.meta.kind, link::LOAD);
}

macro_rules! many_modules {
    ($($name:ident $id:tt),*) => {
        $(struct $name;
        #[module(id = $id)]
        impl $name {
            #[handler]
            async fn ask(&self, _cx: &Cx, _word: Word) -> linkstead::Result<()> {
                Ok(())
            }
        })*
        fn many() -> Builder {
            let builder = linkstead::provider("many");
            $(let builder = builder.module(|_| Ok($name));)*
            builder
        }
    };
}
many_modules!(M1 21, M2 22, M3 23, M4 24, M5 25, M6 26, M7 27, M8 28, M9 29, M10 30, M11 31, M12 32);

/// However many modules there are, a linkd is asked twice: who it is, and for all modules at once.
///
/// Holds: Q61.
#[tokio::test]
async fn a_provider_of_many_modules_is_introduced_with_two_calls() {
    let gateway = Gateway::new("linkd-1", 3).await;
    let (running, _list) = start(many(), Config::default(), vec![gateway.listed(1)]).await;
    let mut linkd = gateway.accept().await;
    // Announce, Bind, and the first report of load.
    let (_, bind, subscribe) = linkd.introduce().await;
    assert_eq!((bind.modules.len(), subscribe), (12, None));
    running.ready().await;
}
