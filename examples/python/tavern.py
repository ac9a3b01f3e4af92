"""Says one thing in the tavern and prints what the room hears: python3 tavern.py [NAME [TEXT [HOST:PORT]]]"""

import sys

from linkstead import Client

# From examples/tavern/protocols.lock; the messages stand in examples/tavern/proto/tavern.proto.
LOGIN = (1, 274666913)
ENTER = (2, 792972173)
SAY = (2, -1890124873)
SAID = (2, -646988871)


def strings(*values):
    """A protobuf message of strings below 128 bytes, numbered from 1: all that this page needs of protobuf."""
    encoded = [value.encode() for value in values]
    return b"".join(bytes([number << 3 | 2, len(text)]) + text for number, text in enumerate(encoded, 1))


def read_strings(data):
    """The strings of such a message, in order."""
    texts, at = [], 0
    while at < len(data):
        size = data[at + 1]
        texts.append(data[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return texts


def main(name="ann", text="hello from Python", addr="127.0.0.1:7710"):
    host, port = addr.rsplit(":", 1)
    client = Client(host, int(port))
    client.login(name)
    client.request(LOGIN, b"")
    print("in the attic:", *read_strings(client.request(ENTER, strings("attic"))))
    client.request(SAY, strings("attic", text))
    protocol, body = client.push()
    while protocol != SAID:
        protocol, body = client.push()
    room, speaker, words = read_strings(body)
    print(f"{room} | {speaker}: {words}")
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
