/**
 * Adds and removes many suppressions in one request, in transactions of a few milliseconds so that other writers are not delayed.
 *
 * Completed pieces stay committed if a later one fails; repeating the request completes the rest.
 */
import Type from 'typebox'
import type { Tx } from '../../db/database.js'
import { route, type Route } from '../../http/route.js'
import { normalizedAddress } from '../../mail/address.js'
import { Email, NewSuppressionBody, readNewSuppression, type SuppressionParts } from './suppression-routes.js'
import { addIfMissing, removeIfPresent } from './suppressions.js'

const MAX_ENTRIES = 1_000
/** Entries per transaction. */
const PIECE = 50
const BODY_OCTETS = 512 * 1_024
const BODY_VALUES = 8 * MAX_ENTRIES

/** Must precede `/suppressions/:email` in the route table. */
export function suppressionBulkRoutes(parts: SuppressionParts): Route[] {
  const { clock, suppressedContacts } = parts
  return [
    route({
      method: 'POST',
      path: '/suppressions/batch',
      access: 'suppressions:write',
      operationId: 'addSuppressions',
      chapter: 'Suppressions',
      summary: 'Suppress many addresses or domains.',
      description:
        'Adds each entry as `POST /suppressions` does, in the order given. An entry that already covers the scope is `known` and unchanged. ' +
        'If one is invalid, nothing is stored.',
      body: Type.Object(
        { suppressions: Type.Array(NewSuppressionBody, { minItems: 1, maxItems: MAX_ENTRIES }) },
        { additionalProperties: false, title: 'NewSuppressions' },
      ),
      bodyLimit: BODY_OCTETS,
      bodyValues: BODY_VALUES,
      response: Type.Object(
        { added: Type.Integer(), widened: Type.Integer(), known: Type.Integer() },
        { title: 'SuppressionsAdded' },
      ),
      async handle({ principal, body }) {
        const now = clock.now()
        const entries = body.suppressions.map((one, at) =>
          readNewSuppression(one, principal.workspaceId, now, `suppressions.${at}.email`),
        )
        const counts = { added: 0, widened: 0, known: 0 }
        const { actor, isSandbox } = principal
        const results = await inPieces(parts, entries, (tx, one) =>
          addIfMissing(tx, one, suppressedContacts, actor, isSandbox),
        )
        for (const result of results) counts[result] += 1
        return counts
      },
    }),
    route({
      method: 'POST',
      path: '/suppressions/bulk-delete',
      access: 'suppressions:write',
      operationId: 'removeSuppressions',
      chapter: 'Suppressions',
      summary: 'Remove many suppressions.',
      description: 'Removes each as `DELETE /suppressions/{email}` does. Repetitions are ignored.',
      body: Type.Object(
        { emails: Type.Array(Email, { minItems: 1, maxItems: MAX_ENTRIES }) },
        { additionalProperties: false, title: 'RemoveSuppressions' },
      ),
      bodyLimit: BODY_OCTETS,
      bodyValues: BODY_VALUES,
      response: Type.Object(
        { removed: Type.Integer(), not_found: Type.Integer() },
        { title: 'SuppressionsRemoved' },
      ),
      async handle({ principal, body }) {
        const { workspaceId, actor, isSandbox } = principal
        const now = clock.now()
        const emails = [...new Set(body.emails.map(normalizedAddress))]
        const results = await inPieces(parts, emails, (tx, email) =>
          removeIfPresent(tx, { workspaceId, email, createdAt: now }, suppressedContacts, actor, isSandbox),
        )
        const removed = results.filter(Boolean).length
        return { removed, not_found: emails.length - removed }
      },
    }),
  ]
}

async function inPieces<T, R>(
  { database, onEvents = () => {} }: SuppressionParts,
  all: readonly T[],
  work: (tx: Tx, one: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  for (let start = 0; start < all.length; start += PIECE) {
    const piece = all.slice(start, start + PIECE)
    const done = await database.write(
      async tx => {
        tx.onCommit(onEvents)
        const done: R[] = []
        for (const one of piece) done.push(await work(tx, one))
        return done
      },
      { isLong: all.length > PIECE },
    )
    results.push(...done)
  }
  return results
}
