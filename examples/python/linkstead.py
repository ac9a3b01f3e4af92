"""A client of a Linkstead gateway in Python's standard library. The wire is described in docs/reference/wire.md.

It shows the wire and nothing more: blocking, one thread, no reconnect.
"""

import socket
import struct
import time

HELLO = (0, -2018202792)
HANDSHAKE_DONE = (0, 1896283174)
KEEP_ALIVE = (0, -183352608)
AUTH = (10000, -997899722)
REPORT_ERROR = (11011, 918874807)

RESPONSE, REQUEST, ONE_WAY, WITH_CODE = 0, 1, 2, 0x20
FRAME_MAX = 2 << 20


class Refused(Exception):
    """A request was answered with `code`: a framework's result, or the module's number << 32 | the game's own code."""

    def __init__(self, code):
        super().__init__(f"refused with {code}")
        self.code = code


class Closed(Exception):
    """The connection is over. `report` is what the gateway said last: (from, code, text), or None."""

    def __init__(self, report):
        super().__init__(f"closed: {report}")
        self.report = report


def long(value):
    """A signed varint: `size - 1` ones and a zero behind the sign, then the number; with 9 bytes no zero."""
    number = ~value if value < 0 else value
    size = next((size for size in range(1, 9) if number < 1 << 7 * size - 1), 9)
    data = (((1 << size - 1) - 1) << 7 * size | number).to_bytes(size, "big")
    return bytes(byte ^ 0xFF for byte in data) if value < 0 else data


def read_long(data, at):
    """A signed varint and where it ends."""
    flip = 0xFF if data[at] & 0x80 else 0
    plain = bytes(byte ^ flip for byte in data[at : at + 9])
    size, ones = 1, int.from_bytes(plain[:2].ljust(2, b"\0"), "big")
    while size < 9 and ones >> 15 - size & 1:
        size += 1
    bits = 7 * size - 1 if size < 9 else 63
    number = int.from_bytes(plain[:size], "big") & (1 << bits) - 1
    return (~number if flip else number), at + size


def uint(value):
    """An unsigned varint of at most 32 bits: the same without a sign."""
    size = next((size for size in range(1, 5) if value < 1 << 7 * size), 5)
    return (((1 << size - 1) - 1) << 7 * size + 1 | value).to_bytes(size, "big")


def read_uint(data, at):
    size = 1
    while size < 5 and data[at] >> 8 - size & 1:
        size += 1
    return int.from_bytes(data[at : at + size], "big") & (1 << 7 * size) - 1, at + size


def tagged(fields):
    """The framework's own messages: {id: int or bytes}, ids below 15; what is 0 or empty is left out."""
    data, last = b"", 0
    for number, value in sorted(fields.items()):
        if value:
            kind, tail = (0, long(value)) if isinstance(value, int) else (3, uint(len(value)) + value)
            data, last = data + bytes([(number - last) << 4 | kind]) + tail, number
    return data + b"\0"


def read_tagged(data):
    fields, at, number = {}, 0, 0
    while data[at]:
        number, kind, at = number + (data[at] >> 4), data[at] & 15, at + 1
        if kind == 0:
            fields[number], at = read_long(data, at)
        elif kind == 3:
            size, at = read_uint(data, at)
            fields[number], at = data[at : at + size], at + size
        else:
            raise ValueError(f"field {number} has kind {kind}")
    return fields


class Client:
    def __init__(self, host, port, timeout_s=10):
        self.stream = socket.create_connection((host, port), timeout_s)
        self.session, self.pushes, self.report, self.answers = 0, [], None, {}
        # The gateway speaks first, but nobody has to wait for it.
        self.write(HANDSHAKE_DONE, bytes([ONE_WAY]), b"\0")

    def login(self, account, token=b"", version=b""):
        self.request(AUTH, tagged({1: account.encode(), 2: token, 3: version}))

    def keep_alive(self):
        """To be called at least once in `linkd.idle_timeout`, 3 minutes, when nothing else is sent."""
        self.request(KEEP_ALIVE, b"\0")

    def request(self, protocol, body):
        """The body of the answer; raises Refused or Closed."""
        self.session += 1
        session = self.session
        self.write(protocol, bytes([REQUEST]) + long(session), body)
        while session not in self.answers:
            self.take()
        code, answer = self.answers.pop(session)
        if code:
            raise Refused(code)
        return answer

    def send(self, protocol, body):
        """A one-way message: nobody answers."""
        self.write(protocol, bytes([ONE_WAY]), body)

    def push(self, timeout_s=10):
        """The next message that came unasked: its protocol and its body."""
        end = time.monotonic() + timeout_s
        while not self.pushes:
            if time.monotonic() > end:
                raise TimeoutError("no push came")
            self.take()
        return self.pushes.pop(0)

    def close(self):
        self.stream.close()

    def write(self, protocol, head, body):
        payload = head + body
        self.stream.sendall(struct.pack("<iiI", *protocol, len(payload)) + payload)

    def take(self):
        """Waits for one frame and puts it where it belongs."""
        module, protocol, size = struct.unpack("<iiI", self.read(12))
        if not 1 <= size <= FRAME_MAX:
            raise ValueError(f"a frame of {size} bytes")
        payload, frame, at, code, session = self.read(size), (module, protocol), 1, 0, 0
        if payload[0] & WITH_CODE:
            code, at = read_long(payload, at)
        family = payload[0] & ~WITH_CODE
        if family != ONE_WAY:
            session, at = read_long(payload, at)
        body = payload[at:]
        if family == RESPONSE:
            self.answers[session] = (code, body)
        elif frame == KEEP_ALIVE:
            self.write(KEEP_ALIVE, bytes([RESPONSE]) + long(session), b"\0")
        elif frame == REPORT_ERROR:
            fields = read_tagged(body)
            self.report = (fields.get(1, 0), fields.get(2, 0), fields.get(3, b"").decode())
        elif frame != HELLO:
            self.pushes.append((frame, body))

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.stream.recv(size - len(data))
            if not part:
                raise Closed(self.report)
            data += part
        return data
