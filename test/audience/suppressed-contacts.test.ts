/** Contacts and the suppressions of their addresses and domains, on both databases. */
import t, { type Test } from 'tap'
import type { ContactPatch } from '../../src/audience/contacts/contacts.js'
import {
  changeContact,
  createContact,
  findContact,
  upsertContact,
} from '../../src/audience/contacts/contacts.js'
import { followSuppressions, optOut } from '../../src/audience/contacts/follow-suppressions.js'
import { sweepSuppressedDomains } from '../../src/audience/contacts/suppressed-domains.js'
import { ContactSweeps } from '../../src/audience/contacts/sweeps.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import type { Suppression } from '../../src/deliverability/suppressions/suppression-store.js'
import { addSuppression, removeSuppression } from '../../src/deliverability/suppressions/suppressions.js'
import { SHELL } from '../../src/core/actor.js'
import { readEventsAfter } from '../../src/events/store.js'
import { unsubscribeRecipient } from '../../src/messages/unsubscribe.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const ACTING = { workspaceId: 'w1', isSandbox: false, source: 'api' } as const
const ANN = 'ann@x.example'

function open(database: Database) {
  const clock = new FakeClock()
  let ids = 0
  const newId = () => {
    const random = Buffer.alloc(10)
    random.writeUInt32BE(++ids)
    return uuidv7(clock.now(), random)
  }
  const parts = { database, clock, newId, onEvents: () => {} }
  const contacts = followSuppressions()
  const shown = async (email = ANN) => {
    const found = await findContact(database.reader, 'w1', { email })
    return found && { subscribed: found.subscribed, bounced: found.bounced }
  }
  return {
    parts,
    shown,
    add: (email = ANN, patch: ContactPatch = {}) =>
      database.write(tx => createContact(parts, tx, ACTING, { email, ...patch })),
    patch: async (patch: ContactPatch, email = ANN) => {
      const found = await findContact(database.reader, 'w1', { email })
      return database.write(tx => changeContact(parts, tx, ACTING, found?.id ?? '', patch))
    },
    put: (patch: ContactPatch, email = ANN) =>
      database.write(tx => upsertContact(parts, tx, ACTING, { email, ...patch })),
    suppress: (email = ANN, entry: Partial<Suppression> = {}) =>
      database.write(tx =>
        addSuppression(
          tx,
          {
            ...{ workspaceId: 'w1', email, reason: 'manual', scope: 'all' },
            ...{ sourceMessageId: null, createdAt: NOW },
            ...entry,
          },
          contacts,
          SHELL,
        ),
      ),
    release: (email = ANN) =>
      database.write(tx =>
        removeSuppression(tx, { workspaceId: 'w1', email, createdAt: NOW }, contacts, SHELL),
      ),
    unsubscribe: (email = ANN) =>
      database.write(tx =>
        unsubscribeRecipient(tx, {
          ...{ workspaceId: 'w1', recipient: email, messageId: 'm1', source: 'one_click', at: NOW },
        }),
      ),
  }
}

const ON = { subscribed: true, bounced: false }
const OFF = { subscribed: false, bounced: false }

eachDatabase(
  t,
  'a suppression unsubscribes the contact at once, and its removal subscribes it again',
  async (t: Test, database: Database) => {
    const { add, suppress, release, shown } = open(database)
    await add()
    for (const entry of [{}, { scope: 'marketing' }, { reason: 'complaint' }] as const) {
      await suppress(ANN, entry)
      t.same(await shown(), OFF)
      await release()
      t.same(await shown(), ON)
    }
    await suppress(ANN, { reason: 'hard_bounce' })
    t.same(await shown(), { subscribed: true, bounced: true })
    await release()
    t.same(await shown(), ON)
    const wanted = ['contact.subscribed', 'contact.unsubscribed'] as const
    const kinds = (await readEventsAfter(database.reader, 0, wanted, 100)).map(({ kind }) => kind)
    t.equal(kinds.filter(kind => kind === 'contact.unsubscribed').length, 3)
    t.equal(kinds.filter(kind => kind === 'contact.subscribed').length, 3)
  },
)

eachDatabase(
  t,
  'removing a suppression never undoes an opt-out by the person',
  async (t: Test, database: Database) => {
    const { add, suppress, release, shown, unsubscribe, patch } = open(database)
    await add()
    // Before the suppression, and while it stands.
    await unsubscribe()
    t.same(await shown(), OFF, 'at once')
    await suppress()
    await release()
    t.same(await shown(), OFF)
    await patch({ subscribed: true })
    await suppress()
    await unsubscribe()
    await release()
    t.same(await shown(), OFF)
    await patch({ subscribed: true })
    await suppress()
    await patch({ subscribed: false })
    await release()
    t.same(await shown(), OFF)
    for (const entry of [
      { reason: 'unsubscribe' },
      { reason: 'complaint', sourceMessageId: 'm1' },
    ] as const) {
      await patch({ subscribed: true })
      await suppress(ANN, entry)
      await release()
      t.same(await shown(), OFF, entry.reason)
    }
    await patch({ subscribed: true })
    t.same(await shown(), ON)
  },
)

eachDatabase(
  t,
  'a contact cannot be subscribed while a suppression by hand stands',
  async (t: Test, database: Database) => {
    const { add, suppress, release, shown, patch, put } = open(database)
    await add()
    for (const [email, reason] of [
      [ANN, 'manual'],
      [ANN, 'complaint'],
      ['@x.example', 'manual'],
    ] as const) {
      await suppress(email, { reason })
      await t.rejects(patch({ subscribed: true }), { code: 'conflict', path: 'subscribed', message: email })
      t.same((await put({ subscribed: true })).contact.subscribed, false, 'an upsert reports what holds')
      await patch({ firstName: 'Ann' })
      await release(email)
      t.same(await shown(), ON)
    }
  },
)

eachDatabase(
  t,
  'contacts created, moved or restored after the suppression follow it',
  async (t: Test, database: Database) => {
    const { parts, add, suppress, release, shown, patch } = open(database)
    await suppress()
    await suppress('dead@x.example', { reason: 'hard_bounce' })
    await suppress('@y.example')
    await add(ANN)
    await add('dead@x.example')
    await add('bob@y.example')
    t.same(await shown(), OFF)
    t.same(await shown('dead@x.example'), { subscribed: true, bounced: true })
    t.same(await shown('bob@y.example'), OFF)
    await patch({ email: 'free@z.example' })
    t.same(await shown('free@z.example'), ON, 'nothing suppresses the new address')
    await patch({ email: 'new@y.example' }, 'free@z.example')
    t.same(await shown('new@y.example'), OFF)
    const sweeps = new ContactSweeps(parts)
    await sweeps.deleteAll(ACTING, SHELL)
    await release('@y.example')
    await release('dead@x.example')
    await sweeps.restoreAll(ACTING, SHELL)
    for (const email of ['bob@y.example', 'new@y.example']) t.same(await shown(email), ON)
    await sweeps.stop()
  },
)

eachDatabase(
  t,
  'a suppressed domain reaches any number of contacts, in bounded steps',
  async (t: Test, database: Database) => {
    const { parts, add, suppress, release, shown, patch } = open(database)
    const emails = Array.from({ length: 600 }, (_, at) => `a${at}@x.example`)
    for (const email of [...emails, 'other@y.example']) await add(email)
    await patch({ subscribed: false }, 'a7@x.example')
    await suppress('a8@x.example')
    const states = async () => {
      const all = await Promise.all(emails.map(email => shown(email)))
      return all.filter(one => one?.subscribed).length
    }
    const sweep = () => sweepSuppressedDomains(parts, new AbortController().signal)
    await suppress('@x.example')
    t.equal(await states(), 598 - 250, 'the first step belongs to the request')
    await sweep()
    t.equal(await states(), 0)
    t.same(await shown('other@y.example'), ON)
    await release('@x.example')
    await sweep()
    t.equal(await states(), 598, 'but for an opt-out, and an address that is suppressed itself')
  },
)

eachDatabase(
  t,
  'an opt-out of a suspended contact outlives the suppression',
  async (t: Test, database: Database) => {
    const { add, suppress, release, shown } = open(database)
    await add()
    await suppress()
    await database.write(tx => optOut(tx, ACTING, ANN, NOW))
    await release()
    t.same(await shown(), OFF)
  },
)
