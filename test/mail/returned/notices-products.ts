/**
 * Free-text bounces of gateways, filters and groupware: paraphrased where the system's text is long, verbatim where it identifies the
 * system.
 */
import { notice, ORIGINAL, ORIGINAL_HEADER } from '../../support/returned/returned-mail.js'
import type { NoticeCase } from './notice-case.js'

export const PRODUCT_NOTICES: readonly NoticeCase[] = [
  {
    name: 'IMail, with the address behind the reason',
    source: notice({
      from: 'Postmaster <postmaster@relay.example>',
      subject: 'Undeliverable Mail',
      header: 'X-Mailer: <SMTP32 v8.22>',
      text: `Unknown user: ann@example.net

Original message follows.

${ORIGINAL}`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox']],
    hasOriginal: true,
  },
  {
    name: 'IMail, given up',
    source: notice({
      from: 'Postmaster <postmaster@relay.example>',
      subject: 'Undeliverable Mail',
      header: 'X-Mailer: <SMTP32 v8.22>',
      text: 'Delivery failed 20 attempts: ann@example.net\n',
    }),
    expected: [['ann@example.net', 'expired']],
  },
  {
    name: 'MailMarshal, with the reason first',
    source: notice({
      from: 'MailMarshal <postmaster@relay.example>',
      subject: 'Undeliverable Mail: "Your receipt"',
      text: `Your message:
   From:    shop@sender.example
   Subject: Your receipt

Could not be delivered because of

550 5.1.1 User unknown

The following recipients were affected:
   ann@example.net

Additional Information
======================
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
  },
  {
    name: 'InterScan',
    source: notice({
      from: 'InterScan MSS <postmaster@relay.example>',
      subject: 'Mail could not be delivered',
      text: `****** Message from InterScan Messaging Security Suite ******

Sent <<< RCPT TO:<ann@example.net>
Received >>> 550 5.1.1 <ann@example.net>... user unknown

Unable to deliver message to <ann@example.net> (and other recipients in the same domain).

************************     End of message     **********************
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
  },
  {
    name: 'Active! hunter',
    source: notice({
      subject: 'FAILURE NOTICE : Your receipt',
      text: `This is a message from the mail gateway.

  >>> ann@example.net <ann@example.net>

550 sorry, no mailbox here by that name (#5.1.1 - chkusr)
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
  },
  {
    name: 'm-FILTER',
    source: notice({
      subject: 'failure notice',
      header: 'X-Mailer: m-FILTER\nContent-Type: text/plain; charset=utf-8',
      text: `\u3053\u306e\u30e1\u30fc\u30eb\u306f\u9001\u4fe1\u3067\u304d\u307e\u305b\u3093\u3067\u3057\u305f\u3002

ann@example.net

-------server message
550 5.1.1 <ann@example.net>: unknown

-------SMTP command
RCPT TO:<ann@example.net>

-------original message
${ORIGINAL}`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
    hasOriginal: true,
  },
  {
    name: 'MailFoundry',
    source: notice({
      subject: 'Message delivery has failed',
      text: `Unable to deliver message to: <ann@example.net>
Delivery failed for the following reason:
mx.example.net[203.0.113.5] responded with failure: 550 5.7.1 message refused: spam

This has been a permanent failure.  No further delivery attempts will be made.
`,
    }),
    expected: [['ann@example.net', 'spam_content', '5.7.1']],
  },
  {
    name: 'SurfControl',
    source: notice({
      text: `Your message could not be sent.
A transcript of the attempts to send the message follows.
The number of attempts made: 1
Addressed To: ann@example.net

Mon, 2 Mar 2026 09:00:00 +0000
Failed to send to identified host,
ann@example.net: [203.0.113.5], 550 no such recipient
--- Message non-deliverable.
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox']],
  },
  {
    name: 'Mail2000',
    source: notice({
      subject: 'Returned Mail: User unknown',
      text: `The original message was received at Mon, 2 Mar 2026 09:00:00 GMT
from shop@sender.example

---The following addresses had delivery errors---

ann@example.net [User unknown]
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox']],
  },
  {
    name: 'a gateway with a one-sentence notice',
    source: notice({
      from: 'mailer-daemon',
      subject: 'There was an error sending your mail',
      text: `We had trouble delivering your message. Full details follow:

1 error(s):

SMTP Server <mx.example.net> rejected recipient <ann@example.net> (Error following RCPT command). It responded as follows: [550 5.1.1 User unknown]
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
  },
  {
    name: 'MXLogic',
    source: notice({
      subject: 'Mail delivery failed',
      text: `This message was created automatically by mail delivery software.
A message that you have sent could not be delivered to one or more
recipients.  This is a permanent error.  The following address failed:

  <ann@example.net>: 550 5.7.1 Service unavailable; Client host [203.0.113.9] blocked using bl.example.org

Included is a copy of the message header:
-----------------------------------------
${ORIGINAL_HEADER}
`,
    }),
    expected: [['ann@example.net', 'blocklisted', '5.7.1']],
    hasOriginal: true,
  },
  {
    name: 'Exchange 5.5 and 2003',
    source: notice({
      from: 'System Administrator <postmaster@relay.example>',
      subject: 'Undeliverable: Your receipt',
      text: `Your message

  To:      list@example.net
  Subject: Your receipt
  Sent:    Mon, 2 Mar 2026 09:00:00 +0000

did not reach the following recipient(s):

ann@example.net on Mon, 2 Mar 2026 09:00:01 +0000
    The recipient name is not recognized
    The MTS-ID of the original message is: c=us;a= ;p=relay;l=MX-1
    MSEXCH:IMS:RELAY:SITE:MX 0 (000C05A6) Unknown Recipient
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox']],
  },
  {
    name: 'Exchange 2010 without its report',
    source: notice({
      from: 'postmaster@relay.example',
      subject: 'Undeliverable: Your receipt',
      text: `Delivery has failed to these recipients or groups:

Ann Example<mailto:ann@example.net>
The e-mail address you entered couldn't be found. Please check the recipient's e-mail address.

Diagnostic information for administrators:

Generating server: relay.example

ann@example.net
#550 5.1.1 RESOLVER.ADR.RecipNotFound; not found ##

Original message headers:

${ORIGINAL_HEADER}
`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox', '5.1.1']],
    hasOriginal: true,
  },
  {
    name: "Microsoft's SMTP service",
    source: notice({
      subject: 'Delivery Status Notification (Failure)',
      text: `This is an automatically generated Delivery Status Notification.

Delivery to the following recipients failed.

       ann@example.net

`,
    }),
    expected: [['ann@example.net', 'unclassified']],
  },
  {
    name: 'Notes, with the reason before the address',
    source: notice({
      from: 'postmaster@relay.example',
      subject: 'Undeliverable message',
      text: `------- Failure Reasons  --------

User not listed in public Name & Address Book
ann@example.net

------- Returned Message --------
${ORIGINAL}`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox']],
    hasOriginal: true,
  },
  {
    name: 'Domino',
    source: notice({
      subject: 'DELIVERY FAILURE: User ann (ann@example.net) not listed in Domino Directory',
      text: `Your message

  Subject: Your receipt

was not delivered to:

  ann@example.net

because:

  User ann (ann@example.net) not listed in Domino Directory

`,
    }),
    expected: [['ann@example.net', 'no_such_mailbox']],
  },
]
