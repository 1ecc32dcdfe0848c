/**
 * Renders a template in its transfer encoding: literal text is encoded once per template instead of once per mail.
 *
 * Called by `mail-plan.ts` for delivery. Used from a template's first mail on, so that a retry has the same octets whatever is
 * cached. Mostly non-ASCII text is shorter in base64, which cannot be pre-encoded, and is rendered as text. Prepared templates are
 * cached as long as the template lives. Fails: MergeError as rendering does.
 */
import {
  encodePiece,
  MIN_PIECE_LENGTH,
  QuotedPrintableWriter,
  type EncodedPiece,
  type EncodedText,
} from '../../mail/compose/encoded-text.js'
import { isShorterInBase64 } from '../../mail/mime/transfer-encoding.js'
import { mapLeaves } from '../merge/map-nodes.js'
import type { MergeTemplate } from '../merge/merge-tree.js'
import type { MergeValues } from '../merge/merge-values.js'
import { renderInto, renderTemplate } from '../merge/render-template.js'

interface Prepared {
  /** The template with its texts copied. */
  readonly template: MergeTemplate
  /** Encoded texts, by the copied text. */
  readonly pieces: ReadonlyMap<string, EncodedPiece>
}

/** Null if base64 is shorter. */
const known = new WeakMap<MergeTemplate, Prepared | null>()

export function renderEncoded(template: MergeTemplate, values: MergeValues): string | EncodedText {
  const prepared = preparedOf(template)
  if (!prepared) return renderTemplate(template, values)
  const encoder = new QuotedPrintableWriter(prepared.pieces)
  renderInto(encoder, prepared.template, values)
  return encoder.end()
}

function preparedOf(template: MergeTemplate): Prepared | null {
  const found = known.get(template)
  if (found !== undefined) return found
  const prepared = prepare(template)
  known.set(template, prepared)
  return prepared
}

function prepare({ nodes, ...template }: MergeTemplate): Prepared | null {
  const texts: string[] = []
  const copied = mapLeaves(nodes, leaf => {
    if (typeof leaf !== 'string') return leaf
    const copy = compact(leaf)
    texts.push(copy)
    return copy
  })
  if (isShorterInBase64(Buffer.from(texts.join('')))) return null
  const pieces = new Map<string, EncodedPiece>()
  for (const text of texts) {
    const piece = text.length < MIN_PIECE_LENGTH ? undefined : encodePiece(text)
    if (piece) pieces.set(text, piece)
  }
  return { template: { ...template, nodes: copied }, pieces }
}

/** A slice of a string with a wide character uses two octets per character, as does every mail it is copied into. */
function compact(text: string): string {
  // eslint-disable-next-line no-control-regex -- one octet each
  return /^[\x00-\xff]*$/.test(text) ? Buffer.from(text, 'latin1').toString('latin1') : text
}
