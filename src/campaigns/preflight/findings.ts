/** Findings of a campaign check, their severities and messages. Pure. */
import type { BlockType } from '../../content/blocks/structure.js'
import {
  CLIPPED_OCTETS,
  type FaultCount,
  type RecipientFault,
} from '../../content/rendering/check-recipients.js'
import type { HtmlFacts } from '../../content/rendering/inspect-html.js'
import type { SpamScore } from './spam-score.js'
import { formatSize } from '../../core/units.js'

export const SEVERITIES = ['error', 'warning', 'notice'] as const
export type Severity = (typeof SEVERITIES)[number]

/** Code and severity. An error: mail would not be sent, or be wrong; a warning: it would look wrong or be distrusted. */
export const FINDINGS = {
  no_recipients: 'error',
  template_not_found: 'error',
  sender_missing: 'error',
  sender_not_verified: 'error',
  audience_not_found: 'error',
  not_renderable: 'error',
  subject_empty: 'error',
  link_empty: 'error',
  link_broken: 'error',
  merge_value_missing: 'warning',
  too_large: 'warning',
  link_unreachable: 'warning',
  image_broken: 'warning',
  image_unreachable: 'warning',
  image_without_alt: 'warning',
  postal_address_missing: 'warning',
  sender_replaced: 'warning',
  dns_record_wrong: 'warning',
  mostly_images: 'warning',
  subject_shouts: 'warning',
  subject_feigns_reply: 'warning',
  little_text: 'warning',
  link_text_misleads: 'warning',
  spam_suspected: 'warning',
  suspicious_link: 'warning',
  unsubscribe_link_added: 'notice',
  feature_unsupported: 'notice',
  spam_not_checked: 'notice',
} as const satisfies Readonly<Record<string, Severity>>
export type FindingCode = keyof typeof FINDINGS

export interface CampaignFinding {
  readonly code: FindingCode
  readonly message: string
  /** The tag, link, image or record it is about. */
  readonly about?: string
  /** How many recipients it concerns; absent if all. */
  readonly recipients?: number
  /** Ids of some of their contacts. */
  readonly contacts?: readonly string[]
  /** Numbers of the variants of the A/B test it concerns; absent if all. */
  readonly variants?: readonly number[]
  /** Names of mail clients that lack the feature. */
  readonly clients?: readonly string[]
  /** Their share of the workspace's opens, 0 to 1; absent if there are too few opens to say. */
  readonly opensShare?: number
  /** Where it is; absent if it is not in a template, or the place is not known. */
  readonly places?: readonly FindingPlace[]
}

/** Of one finding. */
export const MAX_PLACES = 5

export interface FindingPlace {
  readonly templateId: string
  /** Absent for the template as a whole, and for HTML. */
  readonly block?: { readonly id: string; readonly type: BlockType; readonly path: string }
}

const ABOUT_RECIPIENTS: Readonly<Record<RecipientFault, (about: string) => string>> = {
  merge_value_missing: tag => `{{${tag}}} is empty: there is no value and no fallback`,
  link_empty: () => 'A link leads nowhere: its URL is empty',
  link_broken: () => 'A link is not a valid URL',
  subject_empty: () => 'The subject is empty, so the mail is not sent',
  too_large: () =>
    `The HTML has more than ${formatSize(CLIPPED_OCTETS)}; Gmail hides the rest, with the footer`,
  not_renderable: reason => `The mail cannot be rendered: ${reason}`,
}

export function recipientFinding({ fault, about, count, examples }: FaultCount): CampaignFinding {
  return {
    code: fault,
    message: ABOUT_RECIPIENTS[fault](about),
    ...(about === '' ? {} : { about }),
    recipients: count,
    contacts: examples,
  }
}

/** Below this, a mail with images counts as an image; characters, the footer's included. */
const FEW_WORDS = 100
/** Below this, one with links alone counts as a lure. */
const FEW_WORDS_WITH_LINKS = 160

export function htmlFindings(facts: HtmlFacts): CampaignFinding[] {
  const { images, imagesWithoutAlt, brokenImages, textLength, links, mismatchedLinks } = facts
  return [
    ...(facts.emptyLinks > 0 ? [finding('link_empty', 'A link leads nowhere: its URL is empty')] : []),
    ...facts.brokenLinks.map(about => finding('link_broken', 'The link is not a valid URL', about)),
    ...brokenImages.map(about => finding('image_broken', 'The image has no address on the web', about)),
    ...imagesWithoutAlt.map(withoutAlt),
    ...(images > 0 && textLength < FEW_WORDS
      ? [finding('mostly_images', 'The mail is little more than images, which spam filters distrust')]
      : []),
    ...(images === 0 && links > 0 && textLength < FEW_WORDS_WITH_LINKS
      ? [finding('little_text', 'The mail is a link with few words, which spam filters distrust')]
      : []),
    ...mismatchedLinks.map(about =>
      finding(
        'link_text_misleads',
        'The text of the link is the address of another site, as in phishing',
        about,
      ),
    ),
  ]
}

/** @param about source of the image */
export function withoutAlt(about: string): CampaignFinding {
  const message = 'The image has no alt text, which screen readers read and clients show instead of it'
  return finding('image_without_alt', message, about)
}

export function subjectFindings(subject: string): CampaignFinding[] {
  const letters = subject.replace(/\{\{[^{}]*\}\}/g, '').replace(/\P{L}/gu, '')
  const isLoud =
    (letters.length > 5 && letters === letters.toUpperCase() && letters !== letters.toLowerCase()) ||
    /!{2,}/.test(subject)
  return [
    ...(isLoud
      ? [
          finding(
            'subject_shouts',
            'The subject is in capitals or has several exclamation marks, which spam filters distrust',
          ),
        ]
      : []),
    ...(/^\s*(?:re|fwd?|aw|wg|tr|rv)\s*:/i.test(subject)
      ? [
          finding(
            'subject_feigns_reply',
            'The subject begins like that of a reply, which spam filters distrust',
          ),
        ]
      : []),
  ]
}

/** Actions of rspamd for mail that it does not suspect. */
const UNSUSPECTED: ReadonlySet<string> = new Set(['no action', 'greylist'])

export function spamFindings({ score, requiredScore, action }: SpamScore): CampaignFinding[] {
  if (UNSUSPECTED.has(action)) return []
  const said = `rspamd gives ${score.toFixed(1)} of ${requiredScore.toFixed(1)} points and would: ${action}`
  return [finding('spam_suspected', said, action)]
}

const SHORTENERS: ReadonlySet<string> = new Set(
  'bit.ly tinyurl.com t.co goo.gl ow.ly is.gd buff.ly rebrand.ly cutt.ly t.ly shorturl.at'.split(' '),
)

export function linkFindings(links: readonly string[]): CampaignFinding[] {
  return links.flatMap(link => {
    const host = URL.canParse(link) ? new URL(link).hostname : ''
    if (host === '') return [finding('link_broken', 'The link is not a valid URL', link)]
    if (SHORTENERS.has(host.replace(/^www\./, '')))
      return [finding('suspicious_link', 'Links through a URL shortener are distrusted', link)]
    if (/^[\d.]+$/.test(host) || host.startsWith('['))
      return [finding('suspicious_link', 'Links to an IP address are distrusted', link)]
    return []
  })
}

const MAX_ABOUT = 500

export function finding(code: FindingCode, message: string, about?: string): CampaignFinding {
  return { code, message, ...(about === undefined ? {} : { about: about.slice(0, MAX_ABOUT) }) }
}

/** Errors first, then those that concern most. */
export function sorted(findings: readonly CampaignFinding[]): CampaignFinding[] {
  const rank = ({ code }: CampaignFinding) => SEVERITIES.indexOf(FINDINGS[code])
  const reach = ({ recipients = Infinity }: CampaignFinding) => recipients
  return findings.toSorted((one, other) => rank(one) - rank(other) || compare(reach(other), reach(one)))
}

function compare(one: number, other: number): number {
  return one === other ? 0 : one - other
}
