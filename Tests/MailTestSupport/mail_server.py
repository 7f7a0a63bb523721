"""An SMTP server of one test. It prints its port, and each mail as a line of JSON. It ends when its standard input closes.

mail_server.py [--user NAME --password TEXT] [--certificate FILE --key FILE [--implicit]] [--later N] [--closed N]

Recipients decide on the answer: `refused@` gets 550, `later@` gets 451 N times, and `hang@` gets none. The first N connections
of `--closed` are greeted with 554.
"""

import argparse
import asyncio
import email
import email.policy
import json
import logging
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult


def content(mail, kind):
    """Returns the body of a kind, plain or html, as a mail program finds it."""
    body = mail.get_body(preferencelist=(kind,))
    return None if body is None else body.get_content().replace("\r\n", "\n")


class Handler:
    def __init__(self, later):
        self.later = later

    async def handle_RCPT(self, server, session, envelope, address, options):
        name = address.split("@")[0]
        if name == "refused":
            return "550 5.1.1 no such mailbox"
        if name == "hang":
            await asyncio.sleep(3600)
        if name == "later" and self.later > 0:
            self.later -= 1
            return "451 4.7.1 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        line = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "authenticated": bool(session.authenticated),
            "tls": server.transport.get_extra_info("ssl_object") is not None,
            "headers": {name: str(value) for name, value in mail.items()},
            "text": content(mail, "plain"),
            "html": content(mail, "html"),
            "parts": [part.get_content_type() for part in mail.walk()],
            "defects": [str(defect) for part in mail.walk() for defect in part.defects],
        }
        print(json.dumps(line), flush=True)
        return "250 OK"


class Closed(asyncio.Protocol):
    """A connection that the server refuses with its greeting (RFC 5321, section 3.1)."""

    def connection_made(self, transport):
        transport.write(b"554 mail.example.com has no service for you\r\n")


async def serve(options):
    context = None
    if options.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options.certificate, options.key)
    starts = context is not None and not options.implicit

    def check(server, session, envelope, mechanism, data):
        is_right = (data.login.decode(), data.password.decode()) == (options.user, options.password)
        return AuthResult(success=is_right, handled=False)

    handler = Handler(options.later)

    closed = options.closed

    def protocol():
        nonlocal closed
        if closed > 0:
            closed -= 1
            return Closed()
        return SMTP(
            handler,
            enable_SMTPUTF8=True,
            hostname="mail.example.com",
            tls_context=context if starts else None,
            require_starttls=starts,
            auth_required=options.user is not None,
            auth_require_tls=starts,
            authenticator=check if options.user else None,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(protocol, host="127.0.0.1", port=0, ssl=context if options.implicit else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


# They do not concern the tests, such as that of a log-in without STARTTLS, although the connection began with TLS.
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
parser = argparse.ArgumentParser()
for name in ("--user", "--password", "--certificate", "--key"):
    parser.add_argument(name)
parser.add_argument("--implicit", action="store_true")
parser.add_argument("--later", type=int, default=0)
parser.add_argument("--closed", type=int, default=0)
asyncio.run(serve(parser.parse_args()))
