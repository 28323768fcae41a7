"""Other ways to move a record between two Python processes, as bench_ring.py uses them: send() and receive()."""

from __future__ import annotations

import ctypes


class Iceoryx:
    """iceoryx2 publish-subscribe with a ctypes payload, busy-polled."""

    package = "iceoryx2"

    def __init__(self, name: str, side: int, size: int) -> None:
        """Open both directions."""
        import iceoryx2 as iox2

        iox2.set_log_level(iox2.LogLevel.Fatal)
        payload = type("Payload", (ctypes.Structure,), {"_fields_": [("words", ctypes.c_uint64 * (size // 8))]})
        self._node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
        services = [
            self._node.service_builder(iox2.ServiceName.new(f"{name}/{i}")).publish_subscribe(payload).open_or_create()
            for i in (0, 1)
        ]
        self._out = services[side].publisher_builder().create()
        self._in = services[1 - side].subscriber_builder().create()
        self._payload = payload()

    def send(self) -> None:
        """Copy and publish."""
        self._out.send_copy(self._payload)

    def receive(self) -> bool:
        """Take a sample, if there is one."""
        return self._in.receive() is not None


class Kickmsg:
    """kickmsg topics, busy-polled."""

    package = "kickmsg"

    def __init__(self, name: str, side: int, size: int) -> None:
        """Open both directions."""
        import kickmsg

        self._node = kickmsg.Node(f"n{side}", name.replace("-", ""))
        config = kickmsg.Config()
        config.max_payload_size = size
        self._out = self._node.advertise_or_join(f"t{side}", config)
        self._in = self._node.subscribe_or_create(f"t{1 - side}", config)
        self._content = bytes(size)

    def send(self) -> None:
        """Copy and publish."""
        self._out.send(self._content)

    def receive(self) -> bool:
        """Take a message, if there is one."""
        return self._in.try_receive() is not None


class Zmq:
    """pyzmq PAIR over ipc; its receive blocks."""

    package = "zmq"

    def __init__(self, name: str, side: int, size: int) -> None:
        """Bind or connect."""
        import zmq

        self._socket = zmq.Context.instance().socket(zmq.PAIR)
        (self._socket.bind if side == 0 else self._socket.connect)(f"ipc:///tmp/{name}")
        self._content = bytes(size)

    def send(self) -> None:
        """Send."""
        self._socket.send(self._content)

    def receive(self) -> bool:
        """Wait for a message."""
        return self._socket.recv() is not None


class Queues:
    """multiprocessing.Queue, one a direction; its get blocks. Made once and inherited by the other process."""

    package = "multiprocessing"

    def __init__(self, queues, side: int, size: int) -> None:
        """Take the two queues."""
        self._out, self._in = queues[side], queues[1 - side]
        self._content = bytes(size)

    def send(self) -> None:
        """Pickle and send."""
        self._out.put(self._content)

    def receive(self) -> bool:
        """Wait for a message."""
        return self._in.get() is not None


PEERS = {"iceoryx2": Iceoryx, "kickmsg": Kickmsg, "pyzmq ipc": Zmq, "multiprocessing.Queue": Queues}
