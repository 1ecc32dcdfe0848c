/** Looking at all contacts piece by piece: nobody is missed or met twice, and what takes too long is ended with words. */
import t from 'tap'
import { sql } from 'kysely'
import { contactsOf, findAudience, type SeqRange } from '../../src/audience/audience-store.js'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import {
  eachPiece,
  listFromPieces,
  patience,
  piecesOf,
  SCAN_LIMIT_MS,
} from '../../src/audience/scan-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const unhurried = () => {}

t.test('an audience falls into pieces without a gap, newest first, and of few there is one', t => {
  const { first } = contactsOf(3)
  for (const lastContact of [0, 1, 65_535, 65_536, 1_000_000, 50_000_000]) {
    const pieces = piecesOf({ number: 3, lastContact })
    t.equal(pieces.at(-1)?.first, first)
    t.ok(pieces[0]!.last >= first + lastContact)
    t.same(
      pieces.slice(1).map(({ last }) => last + 1),
      pieces.slice(0, -1).map(piece => piece.first),
    )
    t.ok(pieces.length <= 64, `${pieces.length} pieces`)
  }
  t.equal(piecesOf({ number: 3, lastContact: 60_000 }).length, 1)
  t.end()
})

t.test('the more rules are asked of each contact, the smaller the pieces, without a gap', t => {
  const pieces = piecesOf({ number: 3, lastContact: 1_000_000 }, 100)
  t.ok(pieces.length > 150, `${pieces.length} pieces`)
  t.same(
    pieces.slice(1).map(({ last }) => last + 1),
    pieces.slice(0, -1).map(piece => piece.first),
  )
  t.equal(pieces.at(-1)?.first, contactsOf(3).first)
  t.end()
})

eachDatabase(t, 'pages from pieces are those of the whole', async (t, database) => {
  const made = await database.write(tx =>
    insertContacts(
      tx.db,
      'w1',
      Array.from({ length: 40 }, (_, at) => ({
        ...{ id: `c${at}`, email: `c${at}@x.example`, firstName: null, lastName: null, attributes: {} },
        ...{ subscribed: at % 3 > 0, createdAt: NOW },
      })),
    ),
  )
  const audience = await findAudience(database.reader, 'w1')
  const { first } = contactsOf(audience!.number)
  const pieces = [32, 24, 23, 8, 0].map((start, at, starts) => ({
    ...{ first: first + start, last: first + (starts[at - 1] ?? 64) - 1 },
  }))
  const where = ({ first, last }: SeqRange) => [
    sql<boolean>`deleted_at is null`,
    sql<boolean>`seq between ${first} and ${last}`,
    sql<boolean>`subscribed = 1`,
  ]
  const wanted = made
    .filter(({ subscribed }) => subscribed)
    .map(({ id }) => id)
    .reverse()
  for (const [limit, offset] of [
    [100, 0],
    [5, 0],
    [10, 3],
    [4, 24],
    [10, 26],
    [10, 100],
  ] as const) {
    const { items, total } = await listFromPieces(
      database.reader,
      pieces,
      where,
      { limit, offset },
      unhurried,
    )
    t.equal(total, wanted.length)
    t.same(
      items.map(({ id }) => id),
      wanted.slice(offset, offset + limit),
    )
  }
})

t.test('what takes too long is refused as unavailable, and asks no more', async t => {
  const clock = new FakeClock()
  const mayGoOn = patience(clock)
  const asked: number[] = []
  const ask = async (piece: number) => {
    asked.push(piece)
    await clock.advance(SCAN_LIMIT_MS / 4)
  }
  await t.rejects(
    eachPiece(
      Array.from({ length: 50 }, (_, at) => at),
      mayGoOn,
      ask,
    ),
    {
      code: 'unavailable',
      message: /longer than 5 s; use fewer rules/,
      retryAfterMs: 30_000,
    },
  )
  t.ok(asked.length < 15, `${asked.length} of 50 were asked`)
})
