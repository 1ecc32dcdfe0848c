/**
 * Creates or updates up to a thousand contacts: `POST /contacts/batch`.
 *
 * Each contact is a write that succeeds or fails independently, exactly like a `PUT /contacts`. Some writes are issued concurrently and
 * share commits, so other requests are not delayed. After a crash, repeating the request completes it.
 * Fails: as the database does; contacts written before that stay written.
 */
import type { Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import type { Acting, AudienceParts } from '../audience-parts.js'
import { readUpsert, type UpsertBody } from './contact-schema.js'
import { upsertContact } from './contacts.js'

export type Upsert = Static<typeof UpsertBody>

export interface BatchError {
  readonly code: string
  readonly message: string
  /** E.g. `contacts.3.email`. */
  readonly path?: string
}

export interface UpsertResult {
  index: number
  email: string
  status: 'created' | 'updated' | 'unchanged' | 'rejected'
  contact_id: string | null
  error?: BatchError
}

/** Body limits: contacts, octets, JSON values. */
export const UPSERTS = { most: 1_000, octets: 8 * 1_024 * 1_024, values: 200_000 } as const

/** Concurrent writes. */
const AT_ONCE = 25

/** Errors that reject one contact; any other fails the request. */
const REJECTING = new Set(['validation_error', 'not_found', 'conflict', 'duplicate', 'limit_reached'])

export async function upsertBatch(parts: AudienceParts, acting: Acting, upserts: readonly Upsert[]) {
  const results: UpsertResult[] = []
  for (let start = 0; start < upserts.length; start += AT_ONCE) {
    const some = upserts.slice(start, start + AT_ONCE)
    const settled = await Promise.allSettled(some.map((one, at) => upsertOne(parts, acting, one, start + at)))
    for (const one of settled) {
      if (one.status === 'rejected') throw one.reason
      results.push(one.value)
    }
  }
  const countOf = (status: UpsertResult['status']) => results.filter(one => one.status === status).length
  return {
    created: countOf('created'),
    updated: countOf('updated'),
    unchanged: countOf('unchanged'),
    rejected: countOf('rejected'),
    results,
  }
}

async function upsertOne(
  parts: AudienceParts,
  acting: Acting,
  upsert: Upsert,
  index: number,
): Promise<UpsertResult> {
  const { email } = upsert
  try {
    const { fields, additions } = readUpsert(upsert)
    const { contact, result } = await parts.database.write(tx =>
      upsertContact(parts, tx, acting, fields, additions),
    )
    return { index, email: contact.email, status: result, contact_id: contact.id }
  } catch (error) {
    if (!(error instanceof AppError) || !REJECTING.has(error.code)) throw error
    const { code, message } = error
    const path = error.path === undefined ? {} : { path: `contacts.${index}.${error.path}` }
    return { index, email, status: 'rejected', contact_id: null, error: { code, message, ...path } }
  }
}
