/**
 * What a filled-in form brings about: at once, or once it was confirmed by mail.
 *
 * Called by the form's pages. Whoever fills in a form may name somebody else's address. So without a confirmation nothing that is
 * known of a contact is overwritten, and nobody who has unsubscribed gets mail again; the mailbox's owner, who confirms, may do
 * both. Nothing of this shows in the answer: who is a contact already cannot be found out. Each change is told once.
 * Fails: AppError of the mail's door; as the database does.
 */
import type { Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import { confirmationUrl } from '../../mail/links/links.js'
import type { Acting } from '../audience-parts.js'
import { isWithinBounds } from '../checks.js'
import type { Contact } from '../contacts/contact.js'
import {
  changeContact,
  createContact,
  findContact,
  upsertContact,
  type ContactPatch,
} from '../contacts/contacts.js'
import { findList, type List } from '../lists/list-store.js'
import { changeSome } from '../lists/members.js'
import type { FieldValues, Form } from './form.js'
import type { FormOwner, FormParts } from './form-parts.js'
import { isNamePart } from './form-schema.js'
import type { Filled } from './form-values.js'
import { insertOptIn, markConfirmed, recentOptIns, type OptIn } from './opt-in-store.js'
import { writeOptInMail } from './opt-in-mail.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'

/** How long the link of an opt-in mail is good for. */
export const OPT_IN_DAYS = 7
const DAY_MS = 86_400_000
export const OPT_IN_MS = OPT_IN_DAYS * DAY_MS
/** Between two mails about the same form, and of one workspace in a day: whoever fills in somebody's address again and again is no friend. */
const AGAIN_AFTER_MS = 10 * 60_000
const MOST_A_DAY = 5

export interface Visit {
  readonly form: Form
  readonly owner: FormOwner
  readonly texts: PageTexts
  readonly language: string
  /**
   * Takes one confirmation mail from the form's allowance.
   *
   * @returns what gives it back; undefined where the mailbox has had enough
   * @throws AppError rate_limited, unavailable
   */
  readonly mayAsk: (email: string) => (() => void) | undefined
}

/** @returns whether it waits to be confirmed, which is the same for everybody */
export async function takeFilled(parts: FormParts, visit: Visit, filled: Filled): Promise<'waits' | 'taken'> {
  const { database, onEvents } = parts
  const { form } = visit
  const lists = await listsOf(parts, form)
  if (form.doubleOptIn || lists.some(({ doubleOptIn }) => doubleOptIn)) {
    await askToConfirm(parts, visit, filled)
    return 'waits'
  }
  await database.write(async tx => {
    const acting = actingOf(form, visit.owner)
    const contact = await takeUnconfirmed(parts, tx, acting, filled)
    await join(parts, tx, acting, form, contact, filled.values)
    tx.onCommit(onEvents)
  })
  return 'taken'
}

/** @returns whether it waited for that */
export async function confirm(
  parts: FormParts,
  form: Form,
  owner: FormOwner,
  { id, email, fields }: OptIn,
): Promise<boolean> {
  return parts.database.write(async tx => {
    if (!(await markConfirmed(tx.db, id, parts.clock.now()))) return false
    const acting = actingOf(form, owner)
    const known = await findContact(tx.db, acting.workspaceId, { email })
    const { contact } = await upsertContact(parts, tx, acting, {
      ...fitting(patchOf(fields), known),
      email,
      subscribed: true,
    })
    await join(parts, tx, acting, form, contact, fields)
    tx.onCommit(parts.onEvents)
    return true
  })
}

async function askToConfirm(parts: FormParts, visit: Visit, { email, values }: Filled): Promise<void> {
  const { database, clock, newId, linkKeys, publicUrl } = parts
  const { form } = visit
  const send = await parts.openRequestedMail(form.workspaceId)
  const giveBack = visit.mayAsk(email)
  if (!giveBack) return
  await database.write(async tx => {
    tx.onRollback?.(giveBack)
    const now = clock.now()
    const recent = await recentOptIns(tx.db, form.workspaceId, email, now - DAY_MS)
    const wasAskedNow = recent.some(one => one.formId === form.id && one.createdAt > now - AGAIN_AFTER_MS)
    if (wasAskedNow || recent.length >= MOST_A_DAY) {
      tx.onCommit(giveBack)
      return
    }
    const { workspaceId, id: formId } = form
    const optIn: OptIn = { id: newId(), formId, workspaceId, email, fields: values, createdAt: now }
    await insertOptIn(tx.db, optIn)
    const url = confirmationUrl(linkKeys, publicUrl, {
      workspaceId,
      subjectId: optIn.id,
      recipient: email,
      madeAt: now,
    })
    await send(tx, writeOptInMail({ ...visit, sender: visit.owner.sender, email, url, days: OPT_IN_DAYS }))
  })
}

function actingOf({ workspaceId }: Form, { isSandbox }: FormOwner): Acting {
  return { workspaceId, isSandbox, source: 'form' }
}

/** A new contact begins as its suppressions say; of one that is there only gaps are filled. */
async function takeUnconfirmed(
  parts: FormParts,
  tx: Tx,
  acting: Acting,
  { email, values }: Filled,
): Promise<Contact> {
  const known = await findContact(tx.db, acting.workspaceId, { email })
  const patch = patchOf(values)
  if (!known) return createContact(parts, tx, acting, { ...patch, email })
  const { firstName, lastName, attributes = {} } = patch
  const missing = Object.entries(attributes).filter(([name]) => !Object.hasOwn(known.attributes, name))
  const gaps = {
    ...(known.firstName === null && firstName !== undefined ? { firstName } : {}),
    ...(known.lastName === null && lastName !== undefined ? { lastName } : {}),
    ...(missing.length === 0 ? {} : { attributes: Object.fromEntries(missing) }),
  }
  return changeContact(parts, tx, acting, known.id, fitting(gaps, known))
}

/** Without attributes for which a contact has no room: whoever fills in a form neither fails by it nor learns of it. */
function fitting(
  { attributes, ...patch }: Omit<ContactPatch, 'email'>,
  known: Contact | undefined,
): Omit<ContactPatch, 'email'> {
  const isFitting = attributes && (!known || isWithinBounds(known.attributes, attributes))
  return isFitting ? { ...patch, attributes } : patch
}

async function join(
  parts: FormParts,
  tx: Tx,
  acting: Acting,
  form: Form,
  contact: Contact,
  fields: FieldValues,
): Promise<void> {
  for (const list of await listsOf({ database: { reader: tx.db } }, form))
    await changeSome(parts, tx, acting, list, [contact], 'added')
  const { workspaceId, isSandbox } = acting
  await appendEvents(tx, [
    {
      kind: 'form.submitted',
      workspaceId,
      messageId: null,
      isSandbox,
      occurredAt: parts.clock.now(),
      payload: { form_id: form.id, contact_id: contact.id, fields },
    },
  ])
}

/** Those of its lists that are still there. */
async function listsOf(
  { database }: { readonly database: Pick<FormParts['database'], 'reader'> },
  { workspaceId, listIds }: Form,
): Promise<List[]> {
  const lists: List[] = []
  for (const id of listIds) {
    const list = await findList(database.reader, workspaceId, id)
    if (list?.type === 'static') lists.push(list)
  }
  return lists
}

function patchOf(values: FieldValues): Omit<ContactPatch, 'email'> {
  const { first_name: firstName, last_name: lastName } = values
  const attributes = Object.fromEntries(Object.entries(values).filter(([name]) => !isNamePart(name)))
  return {
    ...(typeof firstName === 'string' ? { firstName } : {}),
    ...(typeof lastName === 'string' ? { lastName } : {}),
    ...(Object.keys(attributes).length === 0 ? {} : { attributes }),
  }
}
