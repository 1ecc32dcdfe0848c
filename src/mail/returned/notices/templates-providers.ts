/**
 * Templates for large providers: Gmail and Google Groups, Yahoo, GMX, mail.ru, Zoho, mobile carriers.
 *
 * Based on bounces these providers send.
 */
import { ALONE, ANGLED_FIRST, NAMED, WITH_COLON, type NoticeTemplate } from './template.js'

export const PROVIDER_TEMPLATES: readonly NoticeTemplate[] = [
  // Google Groups, in the sender's language
  {
    name: 'googlegroups',
    when: { field: ['x-failed-recipients', /@googlegroups\.com/i], text: /groups/i },
    recipient: [],
    impliedReason: 'recipient not allowed',
  },
  {
    name: 'googlegroups',
    when: {
      field: ['x-failed-recipients', /@/],
      text: /google\s{1,9}groups|groups\.google\.com|the group you tried to contact/i,
    },
    recipient: [],
    impliedReason: 'recipient not allowed',
  },
  // Gmail
  {
    name: 'gmail-delay',
    when: {
      from: /mail delivery subsystem/i,
      text: /following recipient has been delayed|warning message only/i,
    },
    start: /following recipient/i,
    recipient: [ALONE, ANGLED_FIRST],
    action: 'delayed',
  },
  {
    name: 'gmail',
    when: { text: /delivery to the following recipients? (?:has )?failed permanently/i },
    start: /following recipients?/i,
    recipient: [ALONE, ANGLED_FIRST],
  },
  {
    name: 'gmail',
    when: {
      from: /mailer-daemon@(?:googlemail|google|gmail)\.com/i,
      text: /wasn't delivered to|couldn't be delivered|message blocked|address not found/i,
    },
    recipient: [
      /(?:wasn't delivered to|couldn't be delivered to|your message to) ?<?([^\s<>]{1,64}@[^\s<>]{1,255}?)>?(?: (?:because|has been|couldn't)(.*))?$/i,
      ALONE,
    ],
  },

  // Yahoo and others with qmail-like bounces
  {
    name: 'yahoo',
    when: { text: /sorry, we were unable to deliver your message to the following address/i },
    recipient: [ANGLED_FIRST],
  },
  {
    name: 'yahoo',
    when: { text: /unable to deliver message to the following address/i },
    recipient: [ANGLED_FIRST, ALONE],
  },

  // GMX, web.de, 1&1
  {
    name: 'gmx',
    when: { text: /^smtp error from remote (?:mail )?server/im },
    recipient: [ALONE, WITH_COLON, ANGLED_FIRST],
  },

  // Verizon and its phone gateways
  {
    name: 'verizon',
    when: {
      from: /post_?master@(?:[\w.-]{0,60}\.)?vtext\.|@(?:[\w.-]{0,60}\.)?vzwpix\.|sysadmin@/i,
      text: /error/i,
    },
    recipient: [NAMED, /^\s{0,20}to:? {1,9}<?([^\s<>]{1,64}@[^\s<>]{1,255})>?()/i],
  },
  {
    name: 'verizon',
    when: { text: /^\s{0,20}rcpt to:/im, subject: /^re:|undeliver|fail/i },
    recipient: [/^\s{0,20}rcpt to:? {0,9}<?([^\s<>]{1,64}@[^\s<>]{1,255})>?()/i],
  },

  // KDDI and au
  {
    name: 'kddi',
    when: {
      from: /no-?reply@(?:[\w.-]{0,60}\.)?dion\.ne\.jp/i,
    },
    recipient: [
      /could not be delivered to:? {0,9}<?([^\s<>]{1,64}@[^\s<>]{1,255})>?(.*)$/i,
      ANGLED_FIRST,
      ALONE,
    ],
  },
  {
    name: 'ezweb',
    when: {
      text: /the user\(s\) account is|following recipients did not receive this message|each of the following recipients was rejected|the user\(s\) (?:rejected|refused)/i,
    },
    recipient: [ANGLED_FIRST, WITH_COLON, ALONE],
  },
  // Biglobe
  {
    name: 'biglobe',
    when: { text: /-- ?non-delivered information/i },
    start: /had delivery problems/i,
    recipient: [ALONE, ANGLED_FIRST],
  },

  // SendGrid: `ann:000000:<ann@example.net> : 192.0.2.1 : ...`
  {
    name: 'sendgrid',
    when: { text: /automatically generated message from sendgrid/i },
    recipient: [/:<([^\s<>]{1,64}@[^\s<>]{1,255})> : (.*)$/],
  },
  // Amazon SES and WorkMail
  {
    name: 'amazonses',
    when: { from: /mailer-daemon@(?:[\w.-]{0,60}\.)?amazonses\.com/i },
    recipient: [ALONE, /message to <([^\s<>]{1,64}@[^\s<>]{1,255})>()/i],
  },
  {
    name: 'undeliverable-to',
    when: { text: /following message to <[^<>]{1,320}> was undeliverable/i },
    recipient: [/following message to <([^\s<>]{1,64}@[^\s<>]{1,255})> was undeliverable()/i],
  },
]
