"""Events out: what a connection is, which events it wants, and how they reach its destination.

What a delivery is:

 1. :mod:`orchestrator.events.delivery.records`         connections, deliveries, attempts
 2. :mod:`orchestrator.events.delivery.ports`           what is needed from outside
 3. :mod:`orchestrator.events.delivery.filters`         which events a connection wants
 4. :mod:`orchestrator.events.delivery.transforms`      how a connection changes a payload before it is sent
 5. :mod:`orchestrator.events.delivery.retries`         when a delivery is tried again
 6. :mod:`orchestrator.events.delivery.health`          when a connection is slow, broken, disabled

From an event to its end:

 7. :mod:`orchestrator.events.delivery.dispatching`     which connections are to have an event
 8. :mod:`orchestrator.events.delivery.messages`        messages that ask for a try
 9. :mod:`orchestrator.events.delivery.delivering`      one try, and how it is recorded
10. :mod:`orchestrator.events.delivery.sweeping`        what is due, what is parked
    :mod:`orchestrator.events.delivery.turns`           the turns that tenants take in a sweep
11. :mod:`orchestrator.events.delivery.recovering`      messages that ended in the dead-letter queue
12. :mod:`orchestrator.events.delivery.redispatching`   events that the stream has lost
13. :mod:`orchestrator.events.delivery.transitions`     every change of an event's deliveries
14. :mod:`orchestrator.events.delivery.writes`          the rows that transitions write
15. :mod:`orchestrator.events.delivery.acknowledging`   taking an event out of the inbox meanwhile

Looking and acting:

 -  :mod:`orchestrator.events.delivery.history`         attempts of an event, failed and parked ones of a connection
 -  :mod:`orchestrator.events.delivery.troubles`        connections whose deliveries fail or wait, for operators
 -  :mod:`orchestrator.events.delivery.rounds`          another round of tries, because somebody asks for it
 -  :mod:`orchestrator.events.delivery.resending`       resends one event
 -  :mod:`orchestrator.events.delivery.replays`         jobs that send the events of a time again
 -  :mod:`orchestrator.events.delivery.replaying`       moves such jobs on

The try itself:

16. :mod:`orchestrator.events.delivery.sending`         tries once, to whatever the destination is
17. :mod:`orchestrator.events.delivery.payloads`        the payload that is sent
18. :mod:`orchestrator.events.delivery.webhook_request` the request to a webhook
19. :mod:`orchestrator.events.delivery.signing`         its signature
20. :mod:`orchestrator.events.delivery.addresses`       where a webhook may be sent
21. :mod:`orchestrator.events.delivery.queue_message`   the message to a tenant's own queue
22. :mod:`orchestrator.events.delivery.queue_addresses` where that queue is
23. :mod:`orchestrator.events.delivery.mail`            the mail
24. :mod:`orchestrator.events.delivery.mail_addresses`  which texts are an address of mail
25. :mod:`orchestrator.events.delivery.bounces`         mail that comes back, and complaints about it
26. :mod:`orchestrator.events.delivery.answers`         what an answer means
"""
