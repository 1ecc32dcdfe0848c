/** What contacts are told to have opened and clicked last, however many visits come at once; on both databases. */
import { contactConsumer } from '../../src/audience/contacts/contact-consumer.js'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { listContacts } from '../../src/audience/contacts/contact-page-store.js'
import { uuidv7 } from '../../src/core/ids.js'
import t from 'tap'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

eachDatabase(
  t,
  'of many visits at once the last of each reader counts, in each workspace its own',
  async (t, database) => {
    let ids = 0
    for (const workspaceId of ['w1', 'w2'])
      await database.write(tx =>
        insertContacts(
          tx.db,
          workspaceId,
          ['ann@x.example', 'bob@x.example', 'eve@x.example'].map(email => ({
            ...{
              id: uuidv7(NOW, Buffer.from(String(++ids).padStart(10, '0'))),
              email,
              firstName: null,
              lastName: null,
            },
            ...{ attributes: {}, subscribed: true, createdAt: NOW },
          })),
        ),
      )
    let seq = 0
    const visit = (workspaceId: string, what: 'opened' | 'clicked', to: string, at: number) => ({
      ...{
        kind: `email.${what}`,
        seq: ++seq,
        workspaceId,
        messageId: 'm',
        isSandbox: false,
        occurredAt: NOW + at,
      },
      payload: { to, isBot: false },
    })
    const react = (events: readonly object[]) =>
      database.write(tx => contactConsumer({ onEvents: () => {} }).react(tx, events as never))
    const visits = async (workspaceId: string) =>
      (await listContacts(database.reader, workspaceId, {}, { limit: 10, offset: 0 }, () => {})).items
        .map(({ email, lastOpenedAt, lastClickedAt }) => [
          email,
          ...[lastOpenedAt, lastClickedAt].map(at => (at === null ? null : at - NOW)),
        ])
        .sort()

    await react([
      visit('w1', 'opened', 'ann@x.example', 30),
      visit('w1', 'clicked', 'ann@x.example', 40),
      visit('w1', 'opened', 'Ann@X.example', 20),
      visit('w2', 'opened', 'ann@x.example', 50),
      visit('w1', 'clicked', 'bob@x.example', 5),
      visit('w1', 'clicked', 'bob@x.example', 7),
      visit('w1', 'opened', 'nobody@x.example', 9),
      visit('w9', 'opened', 'ann@x.example', 9),
    ])
    await react([visit('w1', 'opened', 'ann@x.example', 25), visit('w1', 'opened', 'bob@x.example', 1)])
    t.strictSame(await visits('w1'), [
      ['ann@x.example', 30, 40],
      ['bob@x.example', 1, 7],
      ['eve@x.example', null, null],
    ])
    t.strictSame(await visits('w2'), [
      ['ann@x.example', 50, null],
      ['bob@x.example', null, null],
      ['eve@x.example', null, null],
    ])
  },
)
