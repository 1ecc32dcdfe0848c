/**
 * Templates for mail transfer agents: qmail, Exim, Postfix, Sendmail, Courier, OpenSMTPD, DragonFly, James and
 * others.
 *
 * Based on the programs' message templates. Current versions also send DSNs; these templates are for old versions and
 * for relays that strip the report.
 */
import {
  ALONE,
  ANGLED_FIRST,
  AT_END,
  NAMED,
  TRANSCRIPT,
  WITH_COLON,
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
