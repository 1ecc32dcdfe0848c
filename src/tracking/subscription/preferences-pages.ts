/**
 * `/p/<token>`: a recipient's preferences for one workspace: public lists, unsubscribe, subscribe again.
 *
 *   state          because of                                       may
 *   subscribed     nothing                                          choose lists, unsubscribe
 *   unsubscribed   their own unsubscribe, or `subscribed: false`    subscribe again
 *   stopped        a bounce, complaint, manual or domain entry      nothing; only the workspace can lift it
 *
 * Whoever has the link has received the mail, so lists that require a confirmation are joined at once. GET and HEAD change nothing.
 * Only lists shown on the submitted page are joined or left. Invalid tokens get a page with status 404.
 */
import type { Acting } from '../../audience/audience-parts.js'
import { changeContact, createContact, findContact } from '../../audience/contacts/contacts.js'
import { listPublicLists, type List } from '../../audience/lists/list-store.js'
import { changeSome } from '../../audience/lists/members.js'
import { LIST_MEMBERS, thingsOf } from '../../audience/pair-store.js'
import type { Queries, Tx } from '../../db/database.js'
import { deleteUnsubscribe, findSuppression } from '../../deliverability/suppressions/suppression-store.js'
import type { FormFields } from '../../http/public/form-body.js'
import type { PublicRoute, PublicAnswer } from '../../http/public/public-route.js'
import { addressDomain, normalizedAddress } from '../../mail/address.js'
import { LINK_PATHS } from '../../mail/links/links.js'
import { unsubscribeRecipient } from '../../messages/unsubscribe.js'
import { badLink, findLinkHolder, type LinkHolder, type SubscriptionParts, doneNote } from './subscriber.js'
import { html, type Html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'

const PATH = `${LINK_PATHS.preferences}:token`

export function preferencesPages(parts: SubscriptionParts): PublicRoute[] {
  const { database } = parts
  return [
    {
      method: 'GET',
      path: PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const holder = await findLinkHolder(parts, 'preferences', params['token'] ?? '')
        if (!holder) return badLink(texts)
        return preferencesAnswer(holder, await readChoices(database.reader, holder), texts)
      },
    },
    {
      method: 'POST',
      path: PATH,
      isLimited: true,
      async handle({ params, texts, form }) {
        const holder = await findLinkHolder(parts, 'preferences', params['token'] ?? '')
        if (!holder) return badLink(texts)
        const done = await database.write(tx => act(parts, tx, holder, form))
        return preferencesAnswer(holder, await readChoices(database.reader, holder), texts, done)
      },
    },
  ]
}

async function act(
  parts: SubscriptionParts,
  tx: Tx,
  holder: LinkHolder,
  form: FormFields,
): Promise<Done | undefined> {
  const { state } = await readChoices(tx.db, holder)
  tx.onCommit(parts.onEvents)
  switch (form.get('do')) {
    case 'save':
      if (state !== 'subscribed') return undefined
      await chooseLists(parts, tx, holder, form)
      return 'saved'
    case 'unsubscribe':
      await unsubscribeRecipient(tx, { ...holder.subscriber, source: 'preferences', at: parts.clock.now() })
      return 'unsubscribed'
    case 'subscribe':
      if (state !== 'unsubscribed') return undefined
      await subscribeAgain(parts, tx, holder)
      return 'subscribed'
    default:
      return undefined
  }
}

async function chooseLists(
  parts: SubscriptionParts,
  tx: Tx,
  holder: LinkHolder,
  form: FormFields,
): Promise<void> {
  const { workspaceId, email, acting } = actingOf(holder)
  const [shown, wanted] = [new Set(form.all('shown')), new Set(form.all('list'))]
  const lists = (await listPublicLists(tx.db, workspaceId)).filter(({ id }) => shown.has(id))
  const joined = lists.filter(({ id }) => wanted.has(id))
  const known = await findContact(tx.db, workspaceId, { email })
  if (!known && joined.length === 0) return
  const contact = known ?? (await createContact(parts, tx, acting, { email }))
  for (const list of lists)
    await changeSome(parts, tx, acting, list, [contact], wanted.has(list.id) ? 'added' : 'removed')
}

async function subscribeAgain(parts: SubscriptionParts, tx: Tx, holder: LinkHolder): Promise<void> {
  const { workspaceId, email, acting } = actingOf(holder)
  const contact = await findContact(tx.db, workspaceId, { email })
  if (contact) await changeContact(parts, tx, acting, contact.id, { subscribed: true })
  else await deleteUnsubscribe(tx.db, workspaceId, email)
}

function actingOf({ subscriber, isSandbox }: LinkHolder) {
  const { workspaceId, recipient } = subscriber
  const acting: Acting = { workspaceId, isSandbox, source: 'preferences' }
  return { workspaceId, email: normalizedAddress(recipient), acting }
}

async function readChoices(db: Queries, holder: LinkHolder): Promise<Choices> {
  const { workspaceId, email } = actingOf(holder)
  const suppression =
    (await findSuppression(db, workspaceId, email)) ??
    (await findSuppression(db, workspaceId, `@${addressDomain(email)}`))
  const contact = await findContact(db, workspaceId, { email })
  const isOwnWish = suppression?.reason === 'unsubscribe' && suppression.scope === 'marketing'
  if (suppression && !isOwnWish) return { state: 'stopped', lists: [] }
  if (suppression || contact?.subscribed === false) return { state: 'unsubscribed', lists: [] }
  const lists = await listPublicLists(db, workspaceId)
  const member = contact ? await memberOf(db, contact.seq) : new Set<string>()
  return {
    state: 'subscribed',
    lists: lists.map(list => ({ ...shownList(list), isIn: member.has(list.id) })),
  }
}

async function memberOf(db: Queries, contactSeq: number): Promise<ReadonlySet<string>> {
  const lists = await thingsOf(db, LIST_MEMBERS, [contactSeq])
  return new Set(lists.get(contactSeq)?.map(({ id }) => id))
}

function shownList({ id, name, description }: List) {
  return { id, name, description }
}

interface Choices {
  readonly state: 'subscribed' | 'unsubscribed' | 'stopped'
  /** Public lists; empty unless subscribed. */
  readonly lists: readonly {
    readonly id: string
    readonly name: string
    readonly description: string | null
    readonly isIn: boolean
  }[]
}

/** The action the page confirms. */
type Done = 'saved' | 'unsubscribed' | 'subscribed'

function preferencesAnswer(
  { subscriber, sender }: LinkHolder,
  choices: Choices,
  texts: PageTexts,
  done?: Done,
): PublicAnswer {
  const text = texts.preferences
  const { recipient: email } = subscriber
  const name = sender.name
  const content = {
    subscribed: () =>
      html`<p>${text.about(email, name)}</p>
        ${done === 'saved' && doneNote(text.saved)}
        ${done === 'subscribed' && doneNote(text.subscribedAgain(email, name))} ${listForm(choices, texts)}
        <h2>${text.allTitle}</h2>
        <p>${text.allText(name)}</p>
        ${button('unsubscribe', text.unsubscribeAll, 'second')}`,
    unsubscribed: () =>
      html`<p role="status">${text.unsubscribed(email, name)}</p>
        ${button('subscribe', text.subscribeAgain)}`,
    stopped: () => html`<p role="status">${text.stopped(email, name)}</p>`,
  }
  return { page: { title: text.title, content: content[choices.state](), sender } }
}

function listForm({ lists }: Choices, { preferences }: PageTexts): Html {
  if (lists.length === 0) return html`<p class="soft">${preferences.noLists}</p>`
  return html`<form method="post">
    <fieldset>
      <legend>${preferences.lists}</legend>
      ${lists.map(
        ({ id, name, description, isIn }) =>
          html`<input type="hidden" name="shown" value="${id}" /><label class="check"
              ><input type="checkbox" name="list" value="${id}" ${isIn && html` checked`} /><span
                >${name}${description !== null && html`<span>${description}</span>`}</span
              ></label
            >`,
      )}
    </fieldset>
    <button name="do" value="save">${preferences.save}</button>
  </form>`
}

function button(value: string, text: string, kind?: 'second'): Html {
  return html`<form method="post">
    <button name="do" value="${value}" class="${kind ?? 'first'}">${text}</button>
  </form>`
}
