/**
 * Bounce templates of mail servers (qmail, Exim, Postfix, Sendmail, Courier, OpenSMTPD, James and others) and of groupware (Exchange, Notes
 * and Domino, GroupWise), from the programs' own message templates.
 *
 * Current versions also send DSNs; these are for old versions and for relays that strip the report.
 */
import {
  ALONE,
  ANGLED_FIRST,
  AT_END,
  MAILTO,
  NAMED,
  TRANSCRIPT,
  WITH_COLON,
  WITH_DATE,
  WITH_REMARK,
  type NoticeTemplate,
} from './template.js'

export const UNIX_TEMPLATES: readonly NoticeTemplate[] = [
  // OpenSMTPD
  {
    name: 'opensmtpd',
    when: { subject: /^delivery status notification: delay/i, text: /this is the mailer-daemon/i },
    recipient: [WITH_COLON],
    action: 'delayed',
  },
  {
    name: 'opensmtpd',
    when: { text: /this is the mailer-daemon, please do not reply/i },
    recipient: [WITH_COLON],
  },

  // qmail and its descendants: netqmail, s/qmail, Postmaster, James
  {
    name: 'james',
    when: { text: /this is the james mail server/i },
    start: /^failed recipient/i,
    recipient: [ALONE, ANGLED_FIRST],
  },
  {
    name: 'qmail',
    when: {
      text: /qmail-send program|i'm afraid i wasn't able to deliver|i wasn't able to deliver your message|this is the mailer-daemon program/i,
    },
    recipient: [ANGLED_FIRST, ALONE],
  },

  // Exim
  {
    name: 'exim-delay',
    when: { text: /has not been delivered to all of its recipients after|not yet been delivered\b/i },
    recipient: [ALONE, WITH_COLON, ANGLED_FIRST],
    action: 'delayed',
  },
  {
    name: 'exim',
    when: {
      text: /recipient addresses that were\s{1,9}incorrectly constructed|no recipient addresses could be found/i,
    },
    recipient: [
      // `name@x <ann@example.net>: malformed address: ...`: the whole was given as one recipient.
      /^ {1,8}[^<>:]{0,200}<([^\s<>]{1,64}@[^\s<>]{1,255})>:? ?(.*)$/,
      WITH_COLON,
      ALONE,
    ],
    impliedReason: 'malformed address',
  },
  {
    name: 'exim',
    when: { text: /this message was created automatically by (?:the )?mail delivery (?:software|system)/i },
    start:
      /following address(?:es|\(es\))?\b|^recipients\. this is a permanent|address\(es\)|^its? recipients|^failed:/i,
    recipient: [
      ALONE,
      ANGLED_FIRST,
      WITH_COLON,
      WITH_REMARK,
      // Zoho
      /^\s{0,20}([^\s<>,:]{1,64}@[^\s<>,:]{1,255}) ((?:invalid address|error)\b.*)$/i,
    ],
    alias: /^\s{2,20}\(?(?:ultimately )?generated (?:from|by) ([^\s()]{1,64}@[^\s()]{1,255})/i,
  },

  // DragonFly Mail Agent
  {
    name: 'dragonfly',
    when: { text: /this is the dragonfly mail agent/i },
    recipient: [/delivering your mail to <?([^\s<>]{1,64}@[^\s<>]{1,255})>?()/i],
  },

  // Postfix and derivatives
  {
    name: 'postfix-delay',
    when: { text: /this is a warning only|your message could not be delivered for more than/i },
    recipient: [ANGLED_FIRST, WITH_COLON],
    action: 'delayed',
  },
  {
    name: 'postfix',
    when: {
      text: /this is the (?:postfix|mail system|sendmail|[\w-]{1,30}) (?:program |system )?at host|i'm sorry to have to inform you that (?:the|your) message/i,
    },
    recipient: [ANGLED_FIRST, WITH_COLON, ALONE],
  },

  // Postfix, to its postmaster: a failed session
  {
    name: 'postfix-transcript',
    when: { text: /^transcript of session follows/im, subject: /^postfix smtp server: errors from/i },
    recipient: [/^\s{0,8}in:\s{1,8}rcpt to:<([^\s<>]{1,64}@[^\s<>]{1,255})>()/i],
  },

  // Courier
  {
    name: 'courier-delay',
    when: { text: /running the courier mail server/i, subject: /warning|delay/i },
    recipient: [ANGLED_FIRST],
    action: 'delayed',
  },
  {
    name: 'courier',
    when: { text: /running the courier mail server|this is a delivery status notification from/i },
    start: /following recipients/i,
    recipient: [ANGLED_FIRST, ALONE],
  },

  // Sendmail from version 5 on, and derivatives
  {
    name: 'sendmail-delay',
    when: { text: /-- ?the following addresses had transient|\bwarning message only\b/i },
    start: /the following addresses had transient|warning message only/i,
    recipient: [ANGLED_FIRST, ALONE, TRANSCRIPT],
    action: 'delayed',
  },
  {
    name: 'sendmail',
    when: { text: /-- ?the following addresses? (?:had|has)\b/i },
    start: /the following addresses? (?:had|has)\b/i,
    recipient: [ANGLED_FIRST, ALONE, WITH_REMARK, TRANSCRIPT],
    alias: /^\s{1,20}\((?:expanded from|alias):? <?([^\s<>()]{1,64}@[^\s<>()]{1,255})>?\)/i,
  },
  {
    name: 'v5sendmail',
    when: { text: /-- ?transcript of session follows/i },
    start: /transcript of session follows/i,
    isReasonFirst: true,
    recipient: [TRANSCRIPT, ANGLED_FIRST, ALONE],
  },
  {
    name: 'smail',
    when: { text: /\|-+ (?:message log follows|failed addresses follow)/i },
    start: /failed addresses follow/i,
    recipient: [WITH_REMARK, ANGLED_FIRST, ALONE],
  },
  // MMDF and PMDF, and the Sun, iPlanet and Oracle servers derived from them
  {
    name: 'messagingserver',
    when: { text: /this report relates to a message you sent with the following header fields/i },
    start: /following recipients?:/i,
    recipient: [NAMED, ALONE, ANGLED_FIRST],
  },
  {
    name: 'mmdf',
    when: { text: /your message was not delivered for the following reasons?|failed mail {0,9}\(msg/i },
    recipient: [ANGLED_FIRST, WITH_COLON, AT_END, ALONE],
  },
]

export const GROUPWARE_TEMPLATES: readonly NoticeTemplate[] = [
  // Exchange 5.5 to 2003: `ann@example.net on Thu, 29 Apr 2010 ...`
  {
    name: 'exchange',
    when: {
      text: /did not reach (?:the following recipient|some or all of the intended recipients)|following recipient\(s\) (?:could not|cannot) be reached/i,
    },
    start: /following recipient/i,
    recipient: [WITH_DATE, ALONE, ANGLED_FIRST],
  },
  // Exchange 2007 and later; the text differs by language, the links do not
  {
    name: 'exchange-delay',
    when: {
      subject: /^(?:delayed|delivery delayed|retard\u00e9|verz\u00f6gert)/i,
      text: /<mailto:|delivery to these recipients|has been delayed/i,
    },
    recipient: [MAILTO, WITH_REMARK, ALONE],
    action: 'delayed',
  },
  {
    name: 'exchange',
    when: { text: /<mailto:[^\s<>]{1,320}>/i, field: ['x-ms-exchange-message-is-ndr', /^/] },
    recipient: [MAILTO, ALONE],
  },
  {
    name: 'exchange',
    when: {
      text: /delivery has failed to these recipients|rejected your message to the following e-?mail addresses|couldn't be delivered to the following recipients|diagnostic information for administrators/i,
    },
    start: /following e-?mail addresses|these recipients|following recipients/i,
    recipient: [MAILTO, ALONE, WITH_REMARK, ANGLED_FIRST],
  },
  // Microsoft SMTP service: `Delivery to the following recipients failed.`
  {
    name: 'microsoft-smtp-delay',
    when: { text: /delivery to the following recipients? has been delayed/i },
    start: /following recipients?/i,
    recipient: [ALONE, ANGLED_FIRST],
    action: 'delayed',
  },
  {
    name: 'microsoft-smtp',
    when: { text: /delivery to the following recipients? failed/i },
    start: /delivery to the following recipients?/i,
    recipient: [ALONE, ANGLED_FIRST, WITH_COLON],
  },
  // Lotus Notes and Domino
  {
    name: 'notes',
    when: { text: /--- ?failure reasons/i },
    start: /failure reasons/i,
    recipient: [ALONE, ANGLED_FIRST],
  },
  {
    name: 'domino',
    when: { text: /was not delivered to:?|n'a pas \u00e9t\u00e9 remis|wurde nicht zugestellt an/i },
    start: /not delivered to|pas \u00e9t\u00e9 remis|nicht zugestellt an/i,
    recipient: [ALONE, ANGLED_FIRST, WITH_COLON],
  },
  // Novell GroupWise
  {
    name: 'groupwise',
    when: { field: ['x-mailer', /groupwise/i], subject: /undeliverable|status|fail/i },
    recipient: [WITH_REMARK, ALONE, ANGLED_FIRST, AT_END],
  },
]
