/**
 * Classifier rules for texts specific to one provider or product; they precede the general rules.
 *
 * Matched against normalized text (lower case). Sources: the providers' postmaster pages and the products' default messages. A phrase
 * unique to one provider needs no other condition.
 */
import type { ReplyRule } from './classify-subtypes.js'

export const PROVIDER_RULES: readonly ReplyRule[] = [
  // Gmail (support.google.com/a/answer/3726730)
  { text: [/not rfc 5322 compliant/], subtype: 'content_refused' },
  { text: [/receiving mail (?:too quickly|at a rate)/], subtype: 'recipient_rate_limited' },
  { text: [/email account that you tried to reach is (?:disabled|inactive)/], subtype: 'mailbox_disabled' },
  {
    text: [/(?:unusual|suspicious) rate of (?:unsolicited )?(?:mail|email)/, /unusual rate/],
    code: /^4/,
    subtype: 'rate_limited',
  },
  { text: [/(?:unusual|suspicious) rate of (?:unsolicited )?(?:mail|email)/], subtype: 'bad_reputation' },
  { text: [/likely suspicious due to the very low reputation of the sending ip/], subtype: 'bad_reputation' },
  { text: [/very low reputation of the (?:sending )?domain/], subtype: 'bad_sender_reputation' },
  {
    text: [/likely unsolicited mail/, /message is likely (?:unsolicited|suspicious)/],
    subtype: 'spam_content',
  },
  {
    enhanced: /^[45]\.7\.(?:26|27|30|31|32|40)$/,
    text: [/gsmtp/, /google/, /gmail/, /unauthenticated/, /\bspf\b/, /\bdkim\b/, /\bdmarc\b/, /sender/],
    subtype: 'authentication_policy',
  },
  { text: [/content presents a potential security issue/], subtype: 'content_refused' },
  { text: [/daily (?:user )?(?:smtp relay )?sending (?:limit|quota) exceeded/], subtype: 'rate_limited' },
  { text: [/gsmtp/], enhanced: /^4\.7\.0$/, subtype: 'rate_limited' },

  // Exchange Online and Outlook.com (learn.microsoft.com "Email non-delivery reports", postmaster.live.com) Directory-based edge blocking
  // replies 5.4.1 for nonexistent recipients.
  { enhanced: /^5\.4\.1$/, text: [/recipient address rejected: access denied/], subtype: 'no_such_mailbox' },
  {
    enhanced: /^5\.1\.10$/,
    text: [/resolver\.adr/, /recipient(?: address)? (?:was )?not ?found/, /recipientnotfound/],
    subtype: 'no_such_mailbox',
  },
  { enhanced: /^5\.1\.351$/, subtype: 'no_such_mailbox' },
  { enhanced: /^5\.4\.316$/, subtype: 'expired' },
  { enhanced: /^5\.4\.(?:310|312)$/, subtype: 'bad_destination' },
  { enhanced: /^5\.4\.14$/, subtype: 'routing_loop' },
  { text: [/resolver\.rst\.recipsizelimit/], subtype: 'message_too_big', scope: 'address' },
  {
    text: [/sendernotauthenticated/, /restrictedtorecipientspermission/, /resolver\.rst/],
    subtype: 'recipient_refused',
  },
  { enhanced: /^5\.7\.(?:12|124|129|133|134|135|136)$/, subtype: 'recipient_refused' },
  { enhanced: /^5\.7\.(?:509|515)$/, subtype: 'authentication_policy' },
  { enhanced: /^5\.7\.(?:511|60[6-9]|6[1-4]\d)$/, subtype: 'blocklisted' },
  {
    text: [
      /access denied, (?:banned|bad) (?:sending|sender|ip)/,
      /\(s3140\)/,
      /\(s3150\)/,
      /part of their network is on our block list/,
    ],
    subtype: 'blocklisted',
  },
  {
    text: [/temporarily rate limited/, /\brp-00[1-3]\b/, /exceeded the rate limit allowed/],
    subtype: 'rate_limited',
  },
  { text: [/\bdy-00[12]\b/], subtype: 'reverse_dns' },
  {
    enhanced: /^4\.7\.(?:5\d\d|6\d\d)$/,
    text: [/server busy/, /rate limited/, /throttl/, /try again/],
    subtype: 'server_busy',
    scope: 'source',
  },
  { enhanced: /^5\.7\.(?:705|708|750)$/, subtype: 'bad_reputation' },
  {
    text: [/storedrv\S{0,60} ?.{0,40}(?:mailbox full|quota)/, /mapiexceptionshutoffquotaexceeded/],
    subtype: 'mailbox_full',
  },
  { text: [/concurrent (?:server )?connections? limit exceeded/], subtype: 'too_many_connections' },
  { text: [/recipient thread limit exceeded/], subtype: 'recipient_rate_limited' },

  // Yahoo, AOL, Verizon (senders.yahooinc.com/smtp-error-codes)
  { text: [/\[tss?\d\d\]/, /\[ipts\d\d\]/, /\[rl\d\d\]/], subtype: 'rate_limited' },
  { text: [/\[gl\d\d\]/], subtype: 'greylisted' },
  { text: [/\[bl\d\d\]/], subtype: 'blocklisted' },
  { text: [/\[ph\d\d\]/], subtype: 'spam_content' },
  {
    text: [/message not accepted for policy reasons/],
    enhanced: /^5\.7\.9$/,
    subtype: 'authentication_policy',
  },
  {
    text: [
      /\bdd (?:this user doesn't have|requested mail action aborted, mailbox not found|sorry, your message to \S{1,100} cannot be delivered\. this (?:mailbox|account) (?:does not|doesn't))/,
    ],
    subtype: 'no_such_mailbox',
  },
  { text: [/this account has been disabled or discontinued/], subtype: 'mailbox_disabled' },

  // Apple (support.apple.com/en-us/102322)
  { text: [/\[hm\d\d\]/], subtype: 'bad_reputation' },
  { text: [/\[cs\d\d\]/], subtype: 'spam_content' },
  { text: [/excessive volume/], code: /^4/, subtype: 'rate_limited' },

  // Comcast (postmaster.comcast.net/smtp-error-codes.php)
  { text: [/comcast.{0,80}block for spam/, /#?\bbl0000\d\d\b/], subtype: 'blocklisted' },
  { text: [/\brl0000\d\d\b/], subtype: 'rate_limited' },
  { text: [/\bpr00000\d\b/], subtype: 'reverse_dns' },

  // Charter and Cox share a vocabulary
  { text: [/\bcxcnct\b/, /aup#\S{0,10}cnct/], subtype: 'too_many_connections' },
  { text: [/\bcxmxrt\b/, /\bcxthrt\b/, /aup#\S{0,10}mxrt/], subtype: 'rate_limited' },
  { text: [/\bcxdns\b/, /aup#\S{0,10}dns/], subtype: 'reverse_dns' },
  { text: [/\bcxrbl\b/, /aup#\S{0,10}rbl/, /aup#/], subtype: 'blocklisted' },
  { text: [/\bcxsndr\b/], subtype: 'sender_refused' },

  // Deutsche Telekom (postmaster.t-online.de)
  { text: [/to(?:sa|br)@rx\.t-online\.de/, /none\/bad reputation/], subtype: 'bad_reputation' },

  // GMX, web.de, 1&1 (postmaster.gmx.net)
  { text: [/nemesis esmtp.{0,60}bad dns ptr/], subtype: 'reverse_dns' },
  {
    text: [/postmaster\.(?:gmx|web|1und1|mail)\.\w{2,4}\/.{0,60}(?:\?|&)ip=/],
    code: /^5/,
    subtype: 'blocklisted',
  },

  // Orange, SFR, Laposte: the bracketed number is the reason (postmaster.orange.fr)
  { text: [/\bofr\S{0,4}_104\b/, /\blpn\S{0,4}_(?:104|105)\b/], subtype: 'too_many_connections' },
  { text: [/\bofr\S{0,4}_10[23]\b/], subtype: 'blocklisted' },
  { text: [/\b(?:ofr|lpn)\S{0,4}_426\b/], subtype: 'mailbox_disabled' },
  { text: [/\bofr\S{0,4}_(?:416|418)\b/, /\blpn\S{0,4}_416\b/], subtype: 'no_such_mailbox' },
  { text: [/\bofr\S{0,4}_(?:506|515)\b/], subtype: 'spam_content' },

  // Tencent and NetEase
  { text: [/(?:connection|domain|ip) frequency limited/], subtype: 'rate_limited' },
  { text: [/\bhl:(?:ita|icc|itc)\b/], subtype: 'too_many_connections' },
  { text: [/\b(?:rp|mi|hl):(?:cel|dmc|trl|qrc|spb|ifc|iec)\b/], subtype: 'rate_limited' },
  { text: [/\bhl:rep\b/], subtype: 'bad_reputation' },
  { text: [/\bdt:sp[mdf]\b/], subtype: 'spam_content' },

  // Proofpoint, Mimecast, Cisco, Symantec
  { text: [/support\.proofpoint\.com\/dnsbl-lookup/, /ipcheck\.proofpoint\.com/], subtype: 'blocklisted' },
  { text: [/sending mta's poor reputation/], subtype: 'bad_reputation' },
  { text: [/too many recipients received this hour/], subtype: 'rate_limited' },
  { text: [/rejected by header based anti-spoofing policy/], subtype: 'authentication_policy' },
  { text: [/connection rejected by policy \[\d/], subtype: 'blocklisted' },

  // KDDI and other Japanese carriers
  { text: [/: user unknown in (?:virtual|local|relay)/], subtype: 'no_such_mailbox' },
  { text: [/^[<>]{2,4}:? ?recipient address rejected\.?$/], code: /^550$/, subtype: 'no_such_mailbox' },

  // RFC 7504 §3: host that accepts no mail, worded as RFC 3463 X.3.2
  { text: [/system not accepting/], code: /^(?:521|556)$/, subtype: 'domain_accepts_no_mail' },

  // cPanel: default text for a domain it cannot route
  { text: [/account or domain may not exist, they may be blacklisted/], subtype: 'bad_destination' },

  // Facebook (published response codes)
  { text: [/\brcp-p1\b/], subtype: 'no_such_mailbox' },
  { text: [/\brcp-p[2-9]\b/], subtype: 'recipient_refused' },
  { text: [/\brcp-t\d\b/, /\bmsg-t\d\b/], subtype: 'recipient_rate_limited' },
  { text: [/\bcon-t\d\b/], subtype: 'too_many_connections' },
  { text: [/\bpol-t\d\b/, /\bint-t\d\b/], subtype: 'rate_limited' },
  { text: [/\bpol-p[1-5]\b/], subtype: 'bad_reputation' },
  { text: [/\bpol-p[67]\b/], subtype: 'spam_content' },
  { text: [/\bmsg-p\d\b/], subtype: 'content_refused' },
  { text: [/\bdns-p1\b/], subtype: 'reverse_dns' },
  { text: [/\bdns-p[2-9]\b/], subtype: 'sender_refused' },
  { text: [/\bint-p\d\b/], subtype: 'policy_refused' },
]
