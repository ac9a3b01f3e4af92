"""The client against golden bytes, and against the gateway of `linkstead up` at 127.0.0.1:7710."""

import pathlib
import unittest

import linkstead
from linkstead import Client, Closed, Refused
from tavern import ENTER, LOGIN, SAID, SAY, read_strings, strings

VECTORS = pathlib.Path(__file__).parents[2] / "wire/src/vectors.txt"
NOT_AUTHED, ROLE_VIOLATION = 1, 109


class Bytes(unittest.TestCase):
    def vectors(self, kind):
        lines = [line.split(" = ") for line in VECTORS.read_text().splitlines() if line.startswith(kind + " ")]
        self.assertTrue(lines)
        return [(said.split(" ")[1:], bytes.fromhex(data)) for said, data in lines]

    def test_numbers_are_the_golden_ones(self):
        for kind, write, read in [("long", linkstead.long, linkstead.read_long), ("uint", linkstead.uint, linkstead.read_uint)]:
            for (value,), data in self.vectors(kind):
                self.assertEqual((write(int(value)), read(data, 0)), (data, (int(value), len(data))), value)

    def test_logins_are_the_golden_ones(self):
        for said, data in self.vectors("auth"):
            account, token, version, queue = ("" if text == "-" else text for text in said)
            fields = {1: account.encode(), 2: token.encode(), 3: version.encode(), 4: queue.encode()}
            self.assertEqual(linkstead.tagged(fields), data[14:], said)

    def test_reports_are_read(self):
        for (sender, code, *text), data in self.vectors("report"):
            fields = linkstead.read_tagged(data[13:])
            seen = (fields.get(1, 0), fields.get(2, 0), fields.get(3, b"").decode())
            self.assertEqual(seen, (int(sender), int(code), " ".join(text)))


class Gateway(unittest.TestCase):
    def client(self):
        client = Client("127.0.0.1", 7710)
        self.addCleanup(client.close)
        return client

    def test_a_guest_speaks_and_hears(self):
        client = self.client()
        client.keep_alive()
        client.login("py-ann")
        client.keep_alive()
        client.request(LOGIN, b"")
        self.assertIn("py-ann", read_strings(client.request(ENTER, strings("py-room"))))
        client.request(SAY, strings("py-room", "hello"))
        protocol, body = client.push()
        self.assertEqual((protocol, read_strings(body)), (SAID, ["py-room", "py-ann", "hello"]))

    def test_the_game_refuses_with_a_number_of_its_own(self):
        client = self.client()
        client.login("py-bob")
        client.request(LOGIN, b"")
        with self.assertRaises(Refused) as refused:
            client.request(SAY, strings("py-nowhere", "hello"))
        self.assertEqual(refused.exception.code, 2 << 32 | 3)

    def test_before_login_nothing_is_answered_and_the_third_try_closes(self):
        client = self.client()
        for _ in range(2):
            with self.assertRaises(Refused) as refused:
                client.request(LOGIN, b"")
            self.assertEqual(refused.exception.code, -101)
        with self.assertRaises(Closed) as closed:
            client.request(LOGIN, b"")
        self.assertEqual(closed.exception.report, (0, NOT_AUTHED, "NOT_AUTHED"))

    def test_a_close_has_a_code(self):
        client = self.client()
        client.login("py-cat")
        client.send((11008, 1), b"\0")
        with self.assertRaises(Closed) as closed:
            client.push()
        self.assertEqual(closed.exception.report, (0, ROLE_VIOLATION, "ROLE_VIOLATION"))


if __name__ == "__main__":
    unittest.main()
