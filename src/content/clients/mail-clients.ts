/**
 * Mail clients: which of them a request for a mail's images came from, as far as its User-Agent says. Pure. Never throws.
 *
 * Most webmail looks like any other page in a browser, and counts as `other`. Clients that load images before a mail is opened,
 * such as Apple Mail with privacy protection, are machines (`tracking/visits/bot-detection.ts`).
 */

export const MAIL_CLIENTS = [
  'gmail',
  'apple-mail',
  'outlook-windows',
  'outlook-macos',
  'outlook-mobile',
  'outlook-com',
  'yahoo',
  'thunderbird',
  'samsung',
  'gmx',
] as const
export type MailClient = (typeof MAIL_CLIENTS)[number]

export const CLIENT_NAMES: Readonly<Record<MailClient, string>> = {
  gmail: 'Gmail',
  'apple-mail': 'Apple Mail',
  'outlook-windows': 'Outlook for Windows',
  'outlook-macos': 'Outlook for Mac',
  'outlook-mobile': 'Outlook for iOS and Android',
  'outlook-com': 'Outlook.com',
  yahoo: 'Yahoo Mail',
  thunderbird: 'Thunderbird',
  samsung: 'Samsung Email',
  gmx: 'GMX and WEB.DE',
}

export const OTHER_CLIENT = 'other'

/** The first that matches. Gmail and Yahoo load images through proxies, whatever the device. */
const AGENTS: readonly (readonly [MailClient, RegExp])[] = [
  ['gmail', /\bGoogleImageProxy\b|\bggpht\.com\b/],
  ['yahoo', /\bYahoo ?MailProxy\b/i],
  ['outlook-mobile', /\bOutlook-(?:iOS|Android)\b/],
  ['outlook-macos', /\bMacOutlook\//],
  ['outlook-windows', /\bMicrosoft Outlook \d|\bms-office\b|\bMSOffice \d/i],
  ['thunderbird', /\bThunderbird\//],
  // WebKit in a program that is no browser: those add their own name.
  [
    'apple-mail',
    /^Mozilla\/5\.0 \((?:iPhone|iPad|iPod|Macintosh);[^)]*\) AppleWebKit\/[\d.]+ \(KHTML, like Gecko\)(?: Mobile\/\w+)?$/,
  ],
]

export function clientOf(userAgent: string): MailClient | typeof OTHER_CLIENT {
  return AGENTS.find(([, agent]) => agent.test(userAgent))?.[0] ?? OTHER_CLIENT
}

export function isMailClient(text: string): text is MailClient {
  return MAIL_CLIENTS.some(client => client === text)
}
