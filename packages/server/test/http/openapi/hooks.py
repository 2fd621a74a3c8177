"""Loaded by Schemathesis."""

import gc

import requests
import schemathesis

# Freeze the loaded objects. Otherwise each full collection would walk through them again.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 50)


start_session = requests.Session.__init__


def without_variables(session):
    """Each request would read the variables of proxies and .netrc again, and find nothing."""
    start_session(session)
    session.trust_env = False


requests.Session.__init__ = without_variables


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """A cursor is opaque: every made-up one is refused."""
    for path in raw_schema["paths"].values():
        for operation in path.values():
            operation["parameters"] = [
                each for each in operation["parameters"] if each["name"] != "cursor"
            ]
