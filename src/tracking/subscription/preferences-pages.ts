/**
 * `/p/<token>`: what somebody gets from a workspace, to choose: its public lists, everything off, and on again.
 *
 *   state          by                                                        may
 *   subscribed     nothing stands against it                                 choose lists, unsubscribe
 *   unsubscribed   their own unsubscribe, or `subscribed: false`             subscribe again
 *   stopped        a bounce, a complaint, somebody's hand, a whole domain    nothing: the workspace has to see to it
 *
 * Who has the link has the mail, so that lists which otherwise ask for a confirmation by mail are joined at once. GET and HEAD change
 * nothing. Only lists that the page has shown are joined or left.
 * Fails: a token that is none of ours is a page with 404; as the database does.
 */
import type { Acting } from '../../audience/audience-parts.js'
import { changeContact, createContact, findContact } from '../../audience/contacts/contacts.js'
import { listPublicLists, type List } from '../../audience/lists/list-store.js'
import { changeSome } from '../../audience/lists/members.js'
import { LIST_MEMBERS, thingsOf } from '../../audience/pair-store.js'
import type { Queries, Tx } from '../../db/database.js'
import { deleteUnsubscribe, findSuppression } from '../../deliverability/suppressions/suppression-store.js'
import type { FormFields } from '../../http/public/form-body.js'
import type { PublicRoute } from '../../http/public/public-route.js'
import { addressDomain, normalizedAddress } from '../../mail/address.js'
import { LINK_PATHS } from '../../mail/links/links.js'
import { unsubscribeRecipient } from '../../messages/unsubscribe.js'
import { preferencesAnswer, type Choices, type Done } from './preferences-page.js'
import { badLink, findFollower, type Follower, type SubscriptionParts } from './subscriber.js'

const PATH = `${LINK_PATHS.preferences}:token`

export function preferencesPages(parts: SubscriptionParts): PublicRoute[] {
  const { database } = parts
  return [
    {
      method: 'GET',
      path: PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const follower = await findFollower(parts, 'preferences', params['token'] ?? '')
        if (!follower) return badLink(texts)
        return preferencesAnswer(follower, await readChoices(database.reader, follower), texts)
      },
    },
    {
      method: 'POST',
      path: PATH,
      isLimited: true,
      async handle({ params, texts, form }) {
        const follower = await findFollower(parts, 'preferences', params['token'] ?? '')
        if (!follower) return badLink(texts)
        const done = await database.write(tx => act(parts, tx, follower, form))
        return preferencesAnswer(follower, await readChoices(database.reader, follower), texts, done)
      },
    },
  ]
}

async function act(
  parts: SubscriptionParts,
  tx: Tx,
  follower: Follower,
  form: FormFields,
): Promise<Done | undefined> {
  const { state } = await readChoices(tx.db, follower)
  tx.onCommit(parts.onEvents)
  switch (form.get('do')) {
    case 'save':
      if (state !== 'subscribed') return undefined
      await chooseLists(parts, tx, follower, form)
      return 'saved'
    case 'unsubscribe':
      await unsubscribeRecipient(tx, { ...follower.subscriber, source: 'preferences', at: parts.clock.now() })
      return 'unsubscribed'
    case 'subscribe':
      if (state !== 'unsubscribed') return undefined
      await subscribeAgain(parts, tx, follower)
      return 'subscribed'
    default:
      return undefined
  }
}

async function chooseLists(
  parts: SubscriptionParts,
  tx: Tx,
  follower: Follower,
  form: FormFields,
): Promise<void> {
  const { workspaceId, email, acting } = actingOf(follower)
  const [shown, wanted] = [new Set(form.all('shown')), new Set(form.all('list'))]
  const lists = (await listPublicLists(tx.db, workspaceId)).filter(({ id }) => shown.has(id))
  const joined = lists.filter(({ id }) => wanted.has(id))
  const known = await findContact(tx.db, workspaceId, { email })
  if (!known && joined.length === 0) return
  const contact = known ?? (await createContact(parts, tx, acting, { email }))
  for (const list of lists)
    await changeSome(parts, tx, acting, list, [contact], wanted.has(list.id) ? 'added' : 'removed')
}

async function subscribeAgain(parts: SubscriptionParts, tx: Tx, follower: Follower): Promise<void> {
  const { workspaceId, email, acting } = actingOf(follower)
  const contact = await findContact(tx.db, workspaceId, { email })
  if (contact) await changeContact(parts, tx, acting, contact.id, { subscribed: true })
  else await deleteUnsubscribe(tx.db, workspaceId, email)
}

function actingOf({ subscriber, isSandbox }: Follower) {
  const { workspaceId, recipient } = subscriber
  const acting: Acting = { workspaceId, isSandbox, source: 'preferences' }
  return { workspaceId, email: normalizedAddress(recipient), acting }
}

async function readChoices(db: Queries, follower: Follower): Promise<Choices> {
  const { workspaceId, email } = actingOf(follower)
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
