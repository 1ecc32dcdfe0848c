/**
 * The chapters of the API's description: what a reader finds operations under, and a client generator makes groups of.
 *
 * A route names its chapter; the order here is the order on the page. A new resource adds a line.
 */
export const CHAPTERS = {
  Email: 'Send single mails and batches, now or later; what became of each.',
  Domains: 'Sending domains, their DNS records and keys, and the reports that receivers send about them.',
  Suppressions: 'Addresses and domains that get no mail.',
  Bounces: 'Mail that came back, and why.',
  Analytics: 'Counts of what was sent and what followed.',
  Conversions: 'What recipients did afterwards: purchases and product views.',
  Workspace: 'The key that asks, and the log of what was done in its workspace.',
  Health: 'Whether the service works.',
} as const satisfies Record<string, string>

export type Chapter = keyof typeof CHAPTERS
