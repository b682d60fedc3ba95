"""A batch whose end Redis did not hear of must not keep the worker from the next one.

kombu takes a message off a worker's list only after Redis has acknowledged it; Celery logs an acknowledgement
that failed ("Couldn't ack") and goes on. With one batch at a time the list is full from then on: the worker
lives, its heartbeat goes on, and it consumes nothing. Seen with kombu 5.7.0 when CLIENT KILL met one.
"""

from kombu.transport import redis as transport
from kombu.transport import virtual


class ForgetfulQoS(transport.QoS):
    """Takes the message off in any case. Redis delivers it again after the visibility timeout, and the worker
    that gets it leaves out the cases whose results are in."""

    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)
        except Exception:
            virtual.QoS.ack(self, delivery_tag)
            raise


def free_the_slot_of_every_batch() -> None:
    """For all connections that this process opens from now on."""
    transport.Channel.QoS = ForgetfulQoS
