/**
 * Public unsubscribe and preferences pages.
 *
 * The token of the link is the only authentication; it never expires and needs no message row. Wishes are recorded for a removed workspace
 * too, as long as it can be restored; nothing that it wrote itself is shown then. Invalid tokens and workspaces that cannot come back get a
 * 404 page. GET changes nothing, since scanners follow links.
 */
import { findFormerSender, type FormerSender } from '../accounts/workspace-store.js'
import type { Queries, Tx } from '../db/database.js'
import type { Services } from '../db/services.js'
import { snapshot } from '../db/snapshot.js'
import type { PublicAnswer, PublicRoute } from '../http/public/public-route.js'
import { noticePage } from '../http/public/document.js'
import { html, type Html } from '../http/public/html.js'
import type { PageTexts } from '../http/public/languages/page-texts.js'
import type { LinkKeys } from '../mail/links/link-keys.js'
import { readSubscriberToken, makeSubscriberToken } from '../mail/links/subscriber-link.js'
import type { Subscriber } from '../mail/unsubscribe-token.js'
import { findSuppression, deleteUnsubscribe } from '../deliverability/suppressions/suppression-store.js'
import { normalizedAddress, addressDomain } from '../mail/address.js'
import { LINK_PATHS } from '../mail/links/links.js'
import { unsubscribeRecipient } from '../messages/unsubscribe.js'
import type { Acting } from '../audience/audience-parts.js'
import { changeContact, createContact, findContact } from '../audience/contacts/contacts.js'
import { listPublicLists, type List } from '../audience/lists/list-store.js'
import { changeSome } from '../audience/lists/lists.js'
import { LIST_MEMBERS, thingsOf } from '../audience/pair-store.js'
import type { FormFields } from '../http/public/form-body.js'
import { resource } from '../resource/resource.js'

export interface SubscriptionParts extends Pick<Services, 'database' | 'clock' | 'newId' | 'onEvents'> {
  readonly linkKeys: LinkKeys
}

export interface LinkHolder extends FormerSender {
  readonly subscriber: Subscriber
}

export async function findLinkHolder(
  { database, linkKeys, clock }: Pick<SubscriptionParts, 'database' | 'linkKeys' | 'clock'>,
  purpose: 'unsubscribe' | 'preferences',
  token: string,
): Promise<LinkHolder | undefined> {
  const subscriber = readSubscriberToken(linkKeys, purpose, token)
  const found = subscriber && (await findFormerSender(database.reader, subscriber.workspaceId, clock.now()))
  return subscriber && found && { subscriber, ...found }
}

export function badLink({ badLink }: PageTexts): PublicAnswer {
  return { page: noticePage(badLink), status: 404 }
}

/** Confirmation at the top of the page; `role="status"` makes screen readers announce it. */
export function doneNote(text: string) {
  return html`<p class="good" role="status">${text}</p>`
}

const UNSUBSCRIBE_PATH = `${LINK_PATHS.unsubscribe}:token`
/** Form field that marks our own page. */
const BY_PAGE = 'by_page'

export function unsubscribePages(parts: SubscriptionParts): PublicRoute[] {
  const { database, clock, onEvents } = parts
  return [
    {
      method: 'GET',
      path: UNSUBSCRIBE_PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const holder = await findLinkHolder(parts, 'unsubscribe', params['token'] ?? '')
        if (!holder) return badLink(texts)
        const { workspaceId, recipient } = holder.subscriber
        const known = await findSuppression(database.reader, workspaceId, normalizedAddress(recipient))
        return known?.reason === 'unsubscribe'
          ? donePage(parts, holder, texts)
          : confirmationPage(holder, texts)
      },
    },
    {
      method: 'POST',
      path: UNSUBSCRIBE_PATH,
      // A mailbox provider sends the requests of thousands of recipients from one address.
      isLimited: false,
      takesAnyBody: true,
      async handle({ params, texts, form }) {
        const holder = await findLinkHolder(parts, 'unsubscribe', params['token'] ?? '')
        if (!holder) return badLink(texts)
        const source = form.get(BY_PAGE) === undefined ? 'one_click' : 'preferences'
        await database.write(tx => {
          tx.onCommit(onEvents)
          return unsubscribeRecipient(tx, { ...holder.subscriber, source, at: clock.now() })
        })
        return donePage(parts, holder, texts)
      },
    },
  ]
}

function confirmationPage({ subscriber, sender }: LinkHolder, { unsubscribe }: PageTexts): PublicAnswer {
  const content = html`<p>${unsubscribe.question(subscriber.recipient, sender.name)}</p>
    <p class="soft">${unsubscribe.stillComes}</p>
    <form method="post">
      <input type="hidden" name="${BY_PAGE}" value="1" />
      <button>${unsubscribe.button}</button>
    </form>`
  return { page: { title: unsubscribe.title, content, sender } }
}

function donePage(
  { linkKeys }: SubscriptionParts,
  { subscriber, sender }: LinkHolder,
  { unsubscribe }: PageTexts,
): PublicAnswer {
  // Relative: a proxy may serve these pages below a path.
  const preferences = `..${LINK_PATHS.preferences}${makeSubscriberToken(linkKeys, 'preferences', subscriber)}`
  const content = html`${doneNote(unsubscribe.done(subscriber.recipient, sender.name))}
    <p class="soft">${unsubscribe.stillComes}</p>
    <p>${unsubscribe.mistake} <a href="${preferences}">${unsubscribe.toPreferences}</a></p>`
  return { page: { title: unsubscribe.doneTitle, content, sender } }
}

const PREFERENCES_PATH = `${LINK_PATHS.preferences}:token`

export function preferencesPages(parts: SubscriptionParts): PublicRoute[] {
  const { database } = parts
  return [
    {
      method: 'GET',
      path: PREFERENCES_PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const holder = await findLinkHolder(parts, 'preferences', params['token'] ?? '')
        if (!holder) return badLink(texts)
        const choices = await snapshot(database.reader, db => readChoices(db, holder))
        return preferencesAnswer(holder, choices, texts)
      },
    },
    {
      method: 'POST',
      path: PREFERENCES_PATH,
      isLimited: true,
      async handle({ params, texts, form }) {
        const holder = await findLinkHolder(parts, 'preferences', params['token'] ?? '')
        if (!holder) return badLink(texts)
        const { done, choices } = await database.write(async tx => ({
          done: await act(parts, tx, holder, form),
          choices: await readChoices(tx.db, holder),
        }))
        return preferencesAnswer(holder, choices, texts, done)
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
  const lists = holder.isRemoved ? [] : await listPublicLists(db, workspaceId)
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

export const subscriptions = resource({
  open: (parts: SubscriptionParts) => ({ pages: [...unsubscribePages(parts), ...preferencesPages(parts)] }),
})
