/** Free-text bounces of mail transfer agents: paraphrased where the system's text is long, verbatim where it identifies the system. */
import { notice, ORIGINAL, ORIGINAL_HEADER } from '../../support/returned/returned-mail.js'
import type { NoticeCase } from './notice-case.js'

export const UNIX_NOTICES: readonly NoticeCase[] = [
  {
    name: 'qmail, two recipients',
    source: notice({
      subject: 'failure notice',
      text: `Hi. This is the qmail-send program at relay.example.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<ann@example.net>:
203.0.113.5 does not like recipient.
Remote host said: 550 5.1.1 no such user here
Giving up on 203.0.113.5.

<bob@example.org>:
203.0.113.6 failed after I sent the message.
Remote host said: 552 5.2.2 mailbox is over quota

--- Below this line is a copy of the message.

Return-Path: <shop@sender.example>
${ORIGINAL}`,
    }),
    expected: [
      ['ann@example.net', 'no_such_mailbox', '5.1.1'],
      ['bob@example.org', 'mailbox_full', '5.2.2'],
    ],
    hasOriginal: true,
  },
  {
    name: 'qmail, given up after days of no connection',
    source: notice({
      subject: 'failure notice',
      text: `Hi. This is the qmail-send program at relay.example.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<ann@example.net>:
Sorry, I wasn't able to establish an SMTP connection. (#4.4.1)
I'm not going to try again; this message has been in the queue too long.
`,
    }),
    expected: [['ann@example.net', 'network_failure', '4.4.1']],
  },
  {
    name: 'qmail, no host of that name',
    source: notice({
      text: `Hi. This is the qmail-send program at relay.example.
I'm afraid I wasn't able to deliver your message to the following addresses.

<ann@gone.example>:
Sorry, I couldn't find any host named gone.example. (#5.1.2)
`,
    }),
    expected: [['ann@gone.example', 'bad_destination', '5.1.2']],
  },
  {
    name: 'vpopmail behind qmail',
    source: notice({
      text: `Hi. This is the qmail-send program at relay.example.
I'm afraid I wasn't able to deliver your message to the following addresses.

<ann@example.net>:
user is over quota
`,
    }),
    expected: [['ann@example.net', 'mailbox_full']],
  },
  {
    name: 'James',
    source: notice({
      text: `Hi. This is the James mail server at relay.example.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out. Below
I include the list of recipients and the reason why I was unable to deliver
your message.

Failed recipient(s):
ann@example.net

Error message:
550 5.1.1 mailbox does not exist

`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
  },
  {
    name: 'Exim',
    source: notice({
      subject: 'Mail delivery failed: returning message to sender',
      header: 'X-Failed-Recipients: ann@example.net\nAuto-Submitted: auto-replied',
      text: `This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  ann@example.net
    host mx.example.net [203.0.113.5]
    SMTP error from remote mail server after RCPT TO:<ann@example.net>:
    550 5.2.1 The account is disabled

------ This is a copy of the message, including all the headers. ------

${ORIGINAL}`,
    }),
    expected: [['ann@example.net', 'mailbox_disabled', '5.2.1']],
    hasOriginal: true,
  },
  {
    name: 'Exim, forwarded by an alias, without the field',
    source: notice({
      text: `This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  real@far.example
    (generated from ann@example.net)
    unrouteable mail domain "far.example"
`,
    }),
    expected: [['real@far.example', 'bad_destination']],
  },
  {
    name: 'Exim, retry time over',
    source: notice({
      text: `This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  ann@example.net
    retry timeout exceeded
`,
    }),
    expected: [['ann@example.net', 'expired', '4.4.7']],
  },
  {
    name: 'Exim, delayed',
    kind: 'delay',
    source: notice({
      subject: 'Warning: message 1abcde-000001-AA delayed 24 hours',
      header: 'Auto-Submitted: auto-replied',
      text: `This message was created automatically by mail delivery software.
A message that you sent has not yet been delivered to one or more of its
recipients after more than 24 hours on the queue on relay.example.

The address to which the message has not yet been delivered is:

  ann@example.net
    Delay reason: Connection timed out

No action is required on your part. Delivery attempts will continue for
some time, and this warning may be repeated at intervals.
`,
    }),
    expected: [['ann@example.net', 'network_failure']],
  },
  {
    name: 'Exim, an address of no right form',
    source: notice({
      subject: 'Mail failure - malformed recipient address',
      text: `A message that you sent contained one or more recipient addresses that were
incorrectly constructed:

  ann smith <ann@example.net>: malformed address: smith may not follow ann

This address has been ignored. The other addresses in the message were
syntactically valid and have been passed on for an attempt at delivery.
`,
    }),
    expected: [['ann@example.net', 'bad_address_syntax']],
  },
  {
    name: 'Postfix before it had reports',
    source: notice({
      subject: 'Undelivered Mail Returned to Sender',
      text: `This is the Postfix program at host relay.example.

I'm sorry to have to inform you that the message returned
below could not be delivered to one or more destinations.

<ann@example.net>: host mx.example.net[203.0.113.5] said: 550
    <ann@example.net>: User unknown in virtual alias table (in reply to RCPT TO command)

<bob@example.org>: Host or domain name not found. Name service error for
    name=example.org type=A: Host not found
`,
    }),
    expected: [
      ['ann@example.net', 'no_such_mailbox'],
      ['bob@example.org', 'bad_destination'],
    ],
  },
  {
    name: 'Sendmail without a report',
    source: notice({
      subject: 'Returned mail: see transcript for details',
      text: `The original message was received at Mon, 2 Mar 2026 09:00:00 GMT
from app.sender.example [203.0.113.9]

   ----- The following addresses had permanent fatal errors -----
<ann@example.net>
    (reason: 550 5.1.1 <ann@example.net>... User unknown)

   ----- Transcript of session follows -----
... while talking to mx.example.net.:
>>> DATA
<<< 550 5.1.1 <ann@example.net>... User unknown
550 5.1.1 <ann@example.net>... User unknown
<<< 503 5.0.0 Need RCPT (recipient)

   ----- Original message follows -----

${ORIGINAL}`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
    hasOriginal: true,
  },
  {
    name: 'Sendmail, still trying',
    kind: 'delay',
    source: notice({
      subject: 'Warning: could not send message for past 4 hours',
      text: `    **********************************************
    **      THIS IS A WARNING MESSAGE ONLY      **
    **  YOU DO NOT NEED TO RESEND YOUR MESSAGE  **
    **********************************************

   ----- The following addresses had transient non-fatal errors -----
<ann@example.net>

   ----- Transcript of session follows -----
<ann@example.net>... Deferred: Connection refused by mx.example.net.
Warning: message still undelivered after 4 hours
`,
    }),
    expected: [['ann@example.net', 'network_failure']],
  },
  {
    name: 'Sendmail 5',
    source: notice({
      subject: 'Returned mail: User unknown',
      text: `   ----- Transcript of session follows -----
While talking to mx.example.net:
>>> RCPT To:<ann@example.net>
<<< 550 <ann@example.net>... User unknown
550 <ann@example.net>... User unknown
550 gone.example (smtp)... 550 Host unknown
554 <bob@gone.example>... 550 Host unknown (Name server: no such domain)

   ----- Unsent message follows -----
${ORIGINAL}`,
    }),
    expected: [
      ['ann@example.net', 'no_such_mailbox'],
      ['bob@gone.example', 'bad_destination'],
    ],
    hasOriginal: true,
  },
  {
    name: 'Courier',
    source: notice({
      subject: 'NOTICE: mail delivery status.',
      text: `This is a delivery status notification from relay.example,
running the Courier mail server, version 1.0.

Your message to the following recipients cannot be delivered:

<ann@example.net>:
    mx.example.net [203.0.113.5]:
>>> RCPT TO:<ann@example.net>
<<< 550 User unknown

---------------------------------------------------------------------------
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox']],
  },
  {
    name: 'OpenSMTPD',
    source: notice({
      subject: 'Delivery status notification: error',
      text: `    Hi!

    This is the MAILER-DAEMON, please DO NOT REPLY to this email.

    An error has occurred while attempting to deliver a message for
    the following list of recipients:

ann@example.net: 550 5.1.1 no such account
bob@gone.example: Domain does not exist

    Below is a copy of the original message:

${ORIGINAL}`,
    }),
    expected: [
      ['ann@example.net', 'no_such_mailbox', '5.1.1'],
      ['bob@gone.example', 'bad_destination'],
    ],
    hasOriginal: true,
  },
  {
    name: 'DragonFly',
    source: notice({
      subject: 'Mail delivery failed',
      text: `This is the DragonFly Mail Agent v0.13 at relay.example.

There was an error delivering your mail to <ann@example.net>.

mx.example.net [203.0.113.5] did not like our RCPT TO:
550 5.7.1 <ann@example.net>: blocked using dnsbl.example.org

Message headers follow.

${ORIGINAL_HEADER}
`,
    }),
    expected: [['ann@example.net', 'blocklisted', '5.7.1']],
    hasOriginal: true,
  },
  {
    name: 'Oracle and Sun',
    source: notice({
      subject: 'Delivery Notification: Delivery has failed',
      text: `This report relates to a message you sent with the following header fields:

  Message-id: <m1.abc@sender.example>
  From: shop@sender.example
  To: list@example.net

Your message cannot be delivered to the following recipients:

  Recipient address: ann@example.net
  Reason: Remote SMTP server has rejected address
  Diagnostic code: smtp;550 5.1.1 unknown address
  Remote system: dns;mx.example.net (TCP|203.0.113.9|4711|203.0.113.5|25)

  Recipient address: bob@example.org
  Reason: Over quota
`,
    }),
    expected: [
      ['ann@example.net', 'no_such_mailbox', '5.1.1'],
      ['bob@example.org', 'mailbox_full'],
    ],
  },
]
