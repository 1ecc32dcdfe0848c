/**
 * Applies a form submission, immediately or after confirmation by email.
 *
 * Visitors can enter other people's addresses. Without a confirmation, existing contact data is therefore never overwritten and unsubscribed
 * contacts stay unsubscribed; the owner of the mailbox, by confirming, may change both. The response is the same for existing contacts, so it
 * cannot be used to probe for them.
 * Fails: AppError of message intake; as the database does.
 */
import type { Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import { html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import type { Sender } from '../../http/public/public-route.js'
import { confirmationUrl } from '../../mail/links/links.js'
import type { Acting } from '../audience-parts.js'
import { isWithinBounds } from '../checks.js'
import type { Contact } from '../contacts/contact.js'
import {
  changeContact,
  type ContactPatch,
  createContact,
  findContact,
  upsertContact,
} from '../contacts/contacts.js'
import { findList, type List } from '../lists/list-store.js'
import { changeSome } from '../lists/lists.js'
import type { Filled } from './form-html.js'
import { countSubmissions } from './form-count-store.js'
import { insertOptIn, markConfirmed, type OptIn, recentOptIns } from './form-store.js'
import {
  isNamePart,
  type FieldValues,
  type Form,
  type FormOwner,
  type FormParts,
  type RequestedMail,
} from './form.js'
import { addressInMail, nameInMail } from './name-in-mail.js'

/** Validity of an opt-in link. */
const OPT_IN_DAYS = 7
const DAY_MS = 86_400_000
export const OPT_IN_MS = OPT_IN_DAYS * DAY_MS
/** Interval between two mails for the same form and address, and mails per workspace, address and day: prevents mail bombing. */
const AGAIN_AFTER_MS = 10 * 60_000
const MAX_PER_DAY = 5

export interface Visit {
  readonly form: Form
  readonly owner: FormOwner
  readonly texts: PageTexts
  readonly language: string
  /**
   * Takes one confirmation mail from the form's allowance.
   *
   * @returns a function that undoes it; undefined if the mailbox has reached its limit
   * @throws AppError rate_limited, unavailable
   */
  readonly mayAsk: (email: string) => (() => void) | undefined
}

/** @returns whether confirmation is required, which depends on the form only */
export async function submitForm(
  parts: FormParts,
  visit: Visit,
  filled: Filled,
): Promise<'pending' | 'subscribed'> {
  const { database, onEvents } = parts
  const { form } = visit
  const lists = await listsOf(parts, form)
  if (form.doubleOptIn || lists.some(({ doubleOptIn }) => doubleOptIn)) {
    await askToConfirm(parts, visit, filled)
    return 'pending'
  }
  await database.write(async tx => {
    const acting = actingOf(form, visit.owner)
    const contact = await applyUnconfirmed(parts, tx, acting, filled)
    await join(parts, tx, acting, form, contact, filled.values)
    await countSubmissions(tx.db, form, parts.clock.now(), { submitted: 1, completed: 1 })
    tx.onCommit(onEvents)
  })
  return 'subscribed'
}

/** @returns false if it was already confirmed */
export async function confirmOptIn(
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
    await countSubmissions(tx.db, form, parts.clock.now(), { submitted: 0, completed: 1 })
    tx.onCommit(parts.onEvents)
    return true
  })
}

async function askToConfirm(parts: FormParts, visit: Visit, { email, values }: Filled): Promise<void> {
  const { database, clock, newId, linkKeys, publicUrl } = parts
  const { form } = visit
  const { fromDomain, send } = await parts.openRequestedMail(form.workspaceId)
  const giveBack = visit.mayAsk(email)
  if (!giveBack) return
  await database.write(async tx => {
    tx.onRollback?.(giveBack)
    const now = clock.now()
    const recent = await recentOptIns(tx.db, form.workspaceId, email, now - DAY_MS)
    const wasAskedNow = recent.some(one => one.formId === form.id && one.createdAt > now - AGAIN_AFTER_MS)
    if (wasAskedNow || recent.length >= MAX_PER_DAY) {
      tx.onCommit(giveBack)
      return
    }
    const { workspaceId, id: formId } = form
    const optIn: OptIn = { id: newId(), formId, workspaceId, email, fields: values, createdAt: now }
    await insertOptIn(tx.db, optIn)
    await countSubmissions(tx.db, form, now, { submitted: 1, completed: 0 })
    const url = confirmationUrl(linkKeys, publicUrl, {
      workspaceId,
      subjectId: optIn.id,
      recipient: email,
      madeAt: now,
    })
    const { name, address } = visit.owner.sender
    const sender = { name: nameInMail(name, fromDomain), address: addressInMail(address, fromDomain) }
    await send(tx, writeOptInMail({ ...visit, sender, email, url, days: OPT_IN_DAYS }))
  })
}

function actingOf({ workspaceId }: Form, { isSandbox }: FormOwner): Acting {
  return { workspaceId, isSandbox, source: 'form' }
}

/** Creates the contact subject to its suppressions; for an existing one, only fills missing fields. */
async function applyUnconfirmed(
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

/** Drops attributes that would exceed the contact's limits: the visitor must neither fail nor learn of them. */
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

/** Skips deleted lists. */
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

interface OptInMail {
  readonly sender: Pick<Sender, 'name' | 'address'>
  readonly texts: PageTexts
  readonly language: string
  readonly email: string
  readonly url: string
  readonly days: number
}

const BODY = 'margin:0;padding:24px 16px;font:16px/24px Arial,Helvetica,sans-serif'
const BUTTON =
  'display:inline-block;padding:12px 24px;border:1px solid #757d86;border-radius:6px;color:#ffffff;background-color:#1d5fa8;text-decoration:none;font-weight:bold'

/**
 * The mail asking a subscriber to confirm, in the language of the visitor's page. Contains no submitted text except the address, so that
 * strangers cannot send messages through a form.
 */
function writeOptInMail({ sender, texts, language, email, url, days }: OptInMail): RequestedMail {
  const { optIn } = texts
  const { name, address } = sender
  const lines = [optIn.mailText(email, name), `${optIn.mailExpires(days)} ${optIn.mailIgnore}`]
  const body = html`<html lang="${language}">
    <body style="${BODY}">
      <p>${lines[0]}</p>
      <p><a href="${url}" style="${BUTTON}">${optIn.mailButton}</a></p>
      <p>${lines[1]}</p>
      <p>${name}${address !== '' && html`<br />${address}`}</p>
    </body>
  </html>`
  return {
    to: email,
    subject: optIn.mailSubject(name),
    html: `<!doctype html>\n${body.toString()}`,
    text: `${[lines[0], url, lines[1], `${name}\n${address}`.trim()].join('\n\n')}\n`,
  }
}
