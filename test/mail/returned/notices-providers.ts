/**
 * Free-text bounces of large providers and unknown systems: paraphrased where the system's text is long, verbatim where it identifies the
 * system.
 */
import { notice, ORIGINAL, ORIGINAL_HEADER } from '../../support/returned/returned-mail.js'
import type { NoticeCase } from './notice-case.js'

export const PROVIDER_NOTICES: readonly NoticeCase[] = [
  {
    name: 'Gmail in its old form',
    source: notice({
      from: 'Mail Delivery Subsystem <mailer-daemon@googlemail.com>',
      subject: 'Delivery Status Notification (Failure)',
      text: `Delivery to the following recipient failed permanently:

     ann@example.net

Technical details of permanent failure:
Google tried to deliver your message, but it was rejected by the recipient domain. The error that the other server returned was: 550 550 5.1.1 no such user (state 14).

   ----- Original message -----

${ORIGINAL}`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
    hasOriginal: true,
  },
  {
    name: 'Gmail, delayed',
    kind: 'delay',
    source: notice({
      from: 'Mail Delivery Subsystem <mailer-daemon@googlemail.com>',
      subject: 'Delivery Status Notification (Delay)',
      text: `This is an automatically generated Delivery Status Notification

THIS IS A WARNING MESSAGE ONLY.

YOU DO NOT NEED TO RESEND YOUR MESSAGE.

Delivery to the following recipient has been delayed:

     ann@example.net

Message will be retried for 2 more day(s)
`,
    }),
    expected: [['ann@example.net', 'unclassified_delay']],
  },
  {
    name: 'Google Groups, in any language',
    source: notice({
      from: 'Mail Delivery Subsystem <mailer-daemon@googlemail.com>',
      subject: 'Delivery Status Notification (Failure)',
      header:
        'X-Failed-Recipients: team@googlegroups.com\nAuto-Submitted: auto-replied\nContent-Type: text/plain; charset=utf-8',
      text: `Bonjour shop@sender.example,

Le groupe que vous essayez de contacter (team) n'existe peut-\u00eatre pas.

Google Groups
`,
    }),
    expected: [['team@googlegroups.com', 'recipient_refused']],
  },
  {
    name: 'Yahoo',
    source: notice({
      from: 'MAILER-DAEMON@yahoo.com',
      subject: 'Failure Notice',
      text: `Sorry, we were unable to deliver your message to the following address.

<ann@example.net>:
554: 5.7.9 Message not accepted for policy reasons. See https://postmaster.example.net/

--- Below this line is a copy of the message.

${ORIGINAL}`,
    }),
    expected: [['ann@example.net', 'authentication_policy', '5.7.9']],
    hasOriginal: true,
  },
  {
    name: 'Yahoo for hosted domains',
    source: notice({
      subject: 'Delivery failure',
      text: `Message from example.net.
Unable to deliver message to the following address(es).

<ann@example.net>:
This user doesn't have a example.net account (ann@example.net) [0]

<bob@example.net>:
Sorry, your message to bob@example.net cannot be delivered.  This account is over quota.

--- Original message follows.

${ORIGINAL}`,
    }),
    expected: [
      ['ann@example.net', 'no_such_mailbox'],
      ['bob@example.net', 'mailbox_full'],
    ],
    hasOriginal: true,
  },
  {
    name: 'GMX and 1&1',
    source: notice({
      subject: 'Mail delivery failed: returning message to sender',
      text: `This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of
its recipients. This is a permanent error. The following address
failed:

"ann@example.net":
SMTP error from remote server after RCPT command:
host: mx.example.net
5.1.1 <ann@example.net>... User Unknown

--- The header of the original message is following. ---

${ORIGINAL_HEADER}
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
    hasOriginal: true,
  },
  {
    name: 'Zoho',
    source: notice({
      subject: 'Undelivered Mail Returned to Sender',
      header: 'X-Mailer: Zoho Mail',
      text: `This message was created automatically by mail delivery software.
A message that you sent could not be delivered to one or more of its recipients. This is a permanent error.

ann@example.net Invalid Address, ERROR_CODE :550, ERROR_CODE :5.2.1 <ann@example.net>... account suspended

${ORIGINAL}`,
    }),
    expected: [['ann@example.net', 'mailbox_disabled', '5.2.1']],
    hasOriginal: true,
  },
  {
    name: 'a gateway to telephones',
    source: notice({
      from: 'post_master@vtext.com',
      subject: 'Re:Your receipt',
      text: `Error: Invalid user address

Error message below:
550 - Requested action not taken: no such user here

Message details:
  Subject: Your receipt
  MAIL FROM: shop@sender.example
  RCPT TO: 5550100@vtext.com
  Size (in bytes): 39
`,
    }),
    expected: [['5550100@vtext.com', 'no_such_mailbox']],
  },
  {
    name: 'KDDI',
    source: notice({
      from: 'no-reply@app.dion.ne.jp',
      subject: 'Mail delivery failed',
      text: `Could not be delivered to: <ann@example.net>
As their mailbox is full.

Your mail sent on: Mon, 2 Mar 2026 18:00:00 +0900
`,
    }),
    expected: [['ann@example.net', 'mailbox_full']],
  },
  {
    name: 'au',
    source: notice({
      from: 'Postmaster@ezweb.ne.jp',
      subject: 'Mail System Error - Returned Mail',
      text: `The user(s) account is temporarily limited.

<ann@example.net>
`,
    }),
    expected: [['ann@example.net', 'mailbox_unavailable']],
  },
  {
    name: 'Biglobe',
    source: notice({
      from: 'postmaster@biglobe.ne.jp',
      subject: 'Returned mail: Your receipt',
      text: `   ----- The following addresses had delivery problems -----
ann@example.net

   ----- Non-delivered information -----
The number of messages in recipient's mailbox exceeded the local limit.
`,
    }),
    expected: [['ann@example.net', 'mailbox_full']],
  },
  {
    name: 'FML',
    source: notice({
      from: 'list-admin@example.net',
      subject: 'Loop Alert: Duplicated Message-ID (list ML)',
      text: `Duplicated Message-ID in <list@example.net>.

Original mail as follows:

   ${ORIGINAL_HEADER.replaceAll('\n', '\n   ')}
`,
    }),
    expected: [['list@example.net', 'routing_loop']],
    hasOriginal: true,
  },
  {
    name: 'a system nobody knows',
    source: notice({
      from: 'Mail Robot <postmaster@relay.example>',
      subject: 'Your mail could not be delivered',
      text: `Dear sender,

we are sorry: your message for the recipient below was not accepted.

Recipient: ann@example.net
The server of the recipient answered: 550 5.1.1 user does not exist here

Kind regards, the robot
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
  },
  {
    name: 'a system nobody knows, in German',
    source: notice({
      from: 'Mailer-Daemon <mailer-daemon@relay.example>',
      subject: 'Nachricht unzustellbar',
      header: 'Content-Type: text/plain; charset=utf-8',
      text: `Die Nachricht an folgende Adresse konnte nicht zugestellt werden:

   ann@example.net

Grund: 552 5.2.2 mailbox full
`,
    }),
    expected: [['ann@example.net', 'mailbox_full', '5.2.2']],
  },
  {
    name: 'a line of fields divided by semicolons',
    source: notice({
      from: 'postmaster@relay.example',
      subject: 'Delivery Status Notification',
      text: ` - These recipients of your message have been processed by the mail server:
ann@example.net; Failed; 5.1.1 (bad destination mailbox address)

    Remote MTA mx.example.net: SMTP diagnostic: 550 User unknown
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
  },
  {
    name: 'a gateway that sums up the message that it refused',
    source: notice({
      from: 'postmaster@relay.example',
      subject: 'Rejected message',
      text: `The message you sent was rejected.

To: ann@example.net
Subject: Your receipt
Details: sender blocked by policy
`,
    }),
    expected: [['ann@example.net', 'sender_refused']],
  },
  {
    name: 'a provider that has no code for a mailbox that was given up',
    source: notice({
      subject: 'failure notice',
      text: `We're sorry. There's a problem with the e-mail address(es) you're trying to send to.

<ann@example.net>:
child status 100...The message could not be delivered because the user no longer exists
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
  },
]
