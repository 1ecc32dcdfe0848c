/**
 * Creates or updates up to a thousand contacts: `POST /contacts/batch`.
 *
 * Each contact succeeds or fails independently, exactly like a `PUT /contacts`. A transaction stores some of them together; if one of
 * those is rejected, they are stored one by one. After a crash, repeating the request completes it.
 * Fails: as the database does; contacts written before that stay written.
 */
import type { Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import type { Acting, AudienceParts } from '../audience-parts.js'
import { readUpsert, type UpsertBody } from './contact-schema.js'
import { upsertContact, upsertContacts, type Upserted } from './contacts.js'

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

/** Contacts per transaction, a few milliseconds of work. */
const AT_ONCE = 50

/** Errors that reject one contact; any other fails the request. */
const REJECTING = new Set(['validation_error', 'not_found', 'conflict', 'duplicate', 'limit_reached'])

export async function upsertBatch(parts: AudienceParts, acting: Acting, upserts: readonly Upsert[]) {
  const results: UpsertResult[] = []
  for (let start = 0; start < upserts.length; start += AT_ONCE) {
    const some = upserts.slice(start, start + AT_ONCE)
    results.push(
      ...((await upsertTogether(parts, acting, some, start)) ??
        (await upsertEach(parts, acting, some, start))),
    )
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

/** @returns undefined if one of them was rejected, or an address is there twice: nothing was stored */
async function upsertTogether(
  parts: AudienceParts,
  acting: Acting,
  some: readonly Upsert[],
  start: number,
): Promise<UpsertResult[] | undefined> {
  try {
    const read = some.map(readUpsert)
    if (new Set(read.map(({ fields }) => fields.email)).size < read.length) return undefined
    const upserted = await parts.database.write(tx => upsertContacts(parts, tx, acting, read))
    return upserted.map((one, at) => resultOf(one, start + at))
  } catch (error) {
    if (isRejection(error)) return undefined
    throw error
  }
}

async function upsertEach(
  parts: AudienceParts,
  acting: Acting,
  some: readonly Upsert[],
  start: number,
): Promise<UpsertResult[]> {
  const settled = await Promise.allSettled(some.map((one, at) => upsertOne(parts, acting, one, start + at)))
  return settled.map(one => {
    if (one.status === 'rejected') throw one.reason
    return one.value
  })
}

function isRejection(error: unknown): error is AppError {
  return error instanceof AppError && REJECTING.has(error.code)
}

function resultOf({ contact, result }: Upserted, index: number): UpsertResult {
  return { index, email: contact.email, status: result, contact_id: contact.id }
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
    const upserted = await parts.database.write(tx => upsertContact(parts, tx, acting, fields, additions))
    return resultOf(upserted, index)
  } catch (error) {
    if (!isRejection(error)) throw error
    const { code, message } = error
    const path = error.path === undefined ? {} : { path: `contacts.${index}.${error.path}` }
    return { index, email, status: 'rejected', contact_id: null, error: { code, message, ...path } }
  }
}
