/**
 * Changes to many contacts, each with its way back.
 *
 * The bulk routes count what they changed but do not name it, so adding and removing can be undone only if everybody was changed.
 */
import { answer, rest } from '../../api/client'
import { inBulk } from '../../state/audience.svelte'

export interface Done {
  readonly changed: number
  /** Already so, gone, or refused. */
  readonly others: number
  readonly undo?: () => Promise<unknown>
}

/** Contacts that one batch takes. */
const BATCH = 1_000

export async function addToList(ids: readonly string[], id: string): Promise<Done> {
  return withWayBack(await addMembers(ids, id), ids, () => removeMembers(ids, id))
}

export async function removeFromList(ids: readonly string[], id: string): Promise<Done> {
  return withWayBack(await removeMembers(ids, id), ids, () => addMembers(ids, id))
}

export async function tagContacts(ids: readonly string[], id: string): Promise<Done> {
  return withWayBack(await addTag(ids, id), ids, () => removeTag(ids, id))
}

export async function untagContacts(ids: readonly string[], id: string): Promise<Done> {
  return withWayBack(await removeTag(ids, id), ids, () => addTag(ids, id))
}

export async function unsubscribe(emails: readonly string[]): Promise<Done> {
  const changed = await subscribeAll(emails, false)
  return {
    changed: changed.length,
    others: emails.length - changed.length,
    undo: () => subscribeAll(changed, true),
  }
}

export async function deleteContacts(ids: readonly string[]): Promise<Done> {
  const answers = await inBulk(ids, contact_ids =>
    answer(rest.POST('/contacts/bulk-delete', { body: { contact_ids, restorable: true } })),
  )
  const changed = sum(answers.map(({ data }) => data.deleted))
  return { changed, others: ids.length - changed, undo: () => restoreContacts(ids) }
}

export function restoreContacts(ids: readonly string[]): Promise<unknown> {
  return inBulk(ids, contact_ids => answer(rest.POST('/contacts/restore', { body: { contact_ids } })))
}

function withWayBack(changed: number, ids: readonly string[], undo: () => Promise<unknown>): Done {
  const others = ids.length - changed
  return { changed, others, ...(others === 0 ? { undo } : {}) }
}

async function addMembers(ids: readonly string[], id: string): Promise<number> {
  const params = { path: { id } }
  const answers = await inBulk(ids, contact_ids =>
    answer(rest.POST('/lists/{id}/members', { params, body: { contact_ids } })),
  )
  return sum(answers.map(({ data }) => data.added))
}

async function removeMembers(ids: readonly string[], id: string): Promise<number> {
  const params = { path: { id } }
  const answers = await inBulk(ids, contact_ids =>
    answer(rest.DELETE('/lists/{id}/members', { params, body: { contact_ids } })),
  )
  return sum(answers.map(({ data }) => data.removed))
}

async function addTag(ids: readonly string[], id: string): Promise<number> {
  const params = { path: { id } }
  const answers = await inBulk(ids, contact_ids =>
    answer(rest.POST('/tags/{id}/contacts', { params, body: { contact_ids } })),
  )
  return sum(answers.map(({ data }) => data.added))
}

async function removeTag(ids: readonly string[], id: string): Promise<number> {
  const params = { path: { id } }
  const answers = await inBulk(ids, contact_ids =>
    answer(rest.DELETE('/tags/{id}/contacts', { params, body: { contact_ids } })),
  )
  return sum(answers.map(({ data }) => data.removed))
}

/** @returns addresses whose subscription changed */
async function subscribeAll(emails: readonly string[], subscribed: boolean): Promise<string[]> {
  const changed: string[] = []
  for (let start = 0; start < emails.length; start += BATCH) {
    const contacts = emails.slice(start, start + BATCH).map(email => ({ email, subscribed }))
    const { data } = await answer(rest.POST('/contacts/batch', { body: { contacts } }))
    for (const { status, email } of data.results) if (status === 'updated') changed.push(email)
  }
  return changed
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0)
}
