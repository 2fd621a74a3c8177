"""The interface's numbers. A test compares them with the contract's."""

BATCH_EVENTS = 100
BATCH_BYTES = 1_048_576
PAYLOAD_BYTES = 262_144
PAYLOAD_LEVELS = 200
CLIENT_ID_CHARS = 120
RUN_ID_CHARS = 255
EVENT_TYPE_CHARS = 50
LABEL_CHARS = 255
# Agent names, agent ids, session ids, schema versions and span ids.
TEXT_CHARS = 1_024
# The service shows only this much of a release.
RELEASE_CHARS = 100
