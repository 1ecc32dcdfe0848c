/**
 * Says where in templates findings are: the blocks of the visual editor that have them, or the template.
 *
 * Fails as `RenderQueue` does.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { findContactsOf } from '../../audience/contacts/contact-store.js'
import { markBlocks, type MarkedHtml } from '../../content/blocks/mark-blocks.js'
import { readStructure, type Block } from '../../content/blocks/read-structure.js'
import { submittedPath } from '../../content/blocks/documented-names.js'
import type { CheckedRecipient } from '../../content/rendering/check-recipients.js'
import type { Located, LocatedPlace } from '../../content/rendering/locate-faults.js'
import type { SubscriberLinks } from '../../content/rendering/mail-plan.js'
import { brandOf } from '../../content/rendering/merging.js'
import { findTemplate } from '../../content/templates/template-store.js'
import { AppError } from '../../core/errors.js'
import type { Letter } from '../model/letter.js'
import {
  MAX_PLACES,
  withoutAlt,
  type CampaignFinding,
  type FindingCode,
  type FindingPlace,
} from './findings.js'
import type { PreflightParts } from './preflight-parts.js'

interface Checked {
  /** Of the check and its variant; unique. */
  readonly id: string
  readonly workspaceId: string
  readonly workspace: ActingWorkspace
  readonly letter: Letter
  readonly links: SubscriberLinks
  readonly recipient: CheckedRecipient
}

const SOUGHT: { readonly [C in FindingCode]?: readonly Located[] } = {
  merge_value_missing: ['merge_value_missing'],
  link_empty: ['link_empty'],
  link_broken: ['link_broken', 'link'],
  link_unreachable: ['link'],
  suspicious_link: ['link'],
  link_text_misleads: ['link_text_misleads'],
  image_broken: ['image_broken'],
  image_unreachable: ['image'],
  image_without_alt: ['image_without_alt', 'image_with_empty_alt'],
  feature_unsupported: ['feature'],
}
/** About the template as a whole. */
const OF_WHOLE: ReadonlySet<FindingCode> = new Set(['too_large', 'mostly_images', 'little_text'])

/** Recipients whose mail is rendered again. */
const MAX_RECIPIENTS = 10

/** @returns the findings with their places, and images in blocks that say nothing to those who do not see them */
export async function placeFindings(
  parts: PreflightParts,
  checked: Checked,
  findings: readonly CampaignFinding[],
): Promise<readonly CampaignFinding[]> {
  const { letter, workspaceId } = checked
  const template = await findTemplate(parts.send.database.reader, workspaceId, letter.templateId)
  if (!template) return findings
  const marked = template.structure === null ? undefined : markedOf(template.structure)
  const located = await locate(parts, checked, marked?.html ?? template.html, findings)
  const placeOf = (block: number | undefined): FindingPlace[] => {
    const place = block === undefined ? undefined : marked?.places[block]
    if (place) return [{ templateId: template.id, block: place }]
    // Between its blocks is nothing that its author wrote.
    return marked ? [] : [{ templateId: template.id }]
  }
  const all = [...findings, ...emptyAlts(located, marked?.blocks ?? [], findings)]
  return all.map(one => {
    const whole = OF_WHOLE.has(one.code) ? [{ templateId: template.id }] : []
    const found = located.filter(place => isOf(place, one)).flatMap(({ block }) => placeOf(block))
    const places = [...whole, ...found].slice(0, MAX_PLACES)
    return places.length === 0 ? one : { ...one, places }
  })
}

function isOf({ what, about }: LocatedPlace, one: CampaignFinding): boolean {
  return SOUGHT[one.code]?.includes(what) === true && about === (one.about ?? '')
}

interface Marked extends MarkedHtml {
  readonly places: readonly NonNullable<FindingPlace['block']>[]
}

/** @returns undefined if this version does not take the structure any more */
function markedOf(json: string): Marked | undefined {
  try {
    const structure = readStructure(JSON.parse(json))
    const marked = markBlocks(structure)
    const places = marked.blocks.map(({ id, type, place }) => ({
      id,
      type,
      path: submittedPath(place.join('.'), structure.written),
    }))
    return { ...marked, places }
  } catch (error) {
    if (error instanceof AppError) return undefined
    throw error
  }
}

async function locate(
  { send, renderQueue }: PreflightParts,
  { id, workspaceId, workspace, letter, links, recipient }: Checked,
  html: string,
  findings: readonly CampaignFinding[],
): Promise<readonly LocatedPlace[]> {
  const examples = findings.flatMap(({ code, contacts = [] }) => (SOUGHT[code] ? contacts.slice(0, 2) : []))
  const contacts = await findContactsOf(send.database.reader, [
    ...new Set(examples.slice(0, MAX_RECIPIENTS - 1)),
  ])
  const recipients = [...contacts.values()].map(
    ({ id: contact, email, firstName, lastName, attributes }) => ({
      id: contact,
      email,
      firstName,
      lastName,
      attributes,
    }),
  )
  const data = letter.merging?.data
  const request = {
    kind: 'locate' as const,
    html,
    merging: { brand: brandOf(workspace), hasFooter: true, ...(data ? { data } : {}) },
    recipients: [recipient, ...recipients],
    date: send.clock.now(),
    links,
  }
  const load = () => Promise.resolve(request)
  const result = await renderQueue.render({ key: `locate ${id}`, workspaceId, load })
  return result.kind === 'located' ? result.places : []
}

/** Blocks write an empty `alt` where the author wrote none. */
function emptyAlts(
  located: readonly LocatedPlace[],
  blocks: readonly Block[],
  findings: readonly CampaignFinding[],
): CampaignFinding[] {
  const known = new Set(findings.flatMap(({ code, about }) => (code === 'image_without_alt' ? [about] : [])))
  const sources = located.flatMap(({ what, about, block }) => {
    const isImage = block !== undefined && blocks[block]?.type === 'image'
    return what === 'image_with_empty_alt' && isImage && !known.has(about) ? [about] : []
  })
  return [...new Set(sources)].map(withoutAlt)
}
