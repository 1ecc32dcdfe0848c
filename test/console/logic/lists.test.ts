/** Long lists: read page by page, read again, windowed, and followed while others change them. */
import t from 'tap'
import { anchorIn, isNearEnd, rowsIn, shiftOf } from '../../../src/console/web/lib/table-window'
import { markAll, markChanged, readDue, type Follower } from '../../../src/console/web/state/followers'
import {
  MAX_BARREN,
  MOST_AT_ONCE,
  MOST_READ_AGAIN,
  NO_ROWS,
  readAgain,
  readAll,
  readRows,
  START,
  type Listed,
  type Rows,
  type Wanted,
} from '../../../src/console/web/state/paging'

/** A server with rows 0, 1, 2 …, read by cursors. */
function serverOf(count: number, { isCounted = true } = {}) {
  const asked: Wanted[] = []
  let all = Array.from({ length: count }, (_, at) => at)
  return {
    asked,
    insertBefore: (row: number) => (all = all.flatMap(one => (one === row ? [row - 0.5, row] : [one]))),
    read: async (wanted: Wanted): Promise<Listed<number>> => {
      asked.push(wanted)
      const { limit, offset = 0, after } = wanted
      const from = after === undefined ? offset : all.findIndex(row => row > Number(after))
      const data = from === -1 ? [] : all.slice(from, from + limit)
      const isMore = from !== -1 && from + limit < all.length
      return {
        data,
        pagination: {
          total: isCounted ? all.length : 0,
          has_more: isMore,
          ...(isMore ? { next_cursor: String(data.at(-1)) } : {}),
        },
      }
    },
  }
}

const PAGE = { wanted: 1, pageSize: 100, counting: 'first' } as const

/** Reads on until there are so many rows. */
async function readUpTo(
  count: number,
  read: (wanted: Wanted) => Promise<Listed<number>>,
): Promise<Rows<number>> {
  let rows: Rows<number> = NO_ROWS
  while (rows.rows.length < count) {
    const from = { index: rows.rows.length, cursor: rows.cursor }
    rows = (await readRows(read, rows, { from, ...PAGE }))!
  }
  return rows
}

t.test('pages are read one after the other, by the cursor of the last one', async t => {
  const { read, asked } = serverOf(250)
  const first = (await readRows(read, NO_ROWS, { from: START, ...PAGE }))!
  t.match(first, { total: 250, isLast: false, isPaused: false, cursor: '99' })
  const second = (await readRows(read, first, { from: { index: 100, cursor: first.cursor }, ...PAGE }))!
  const third = (await readRows(read, second, { from: { index: 200, cursor: second.cursor }, ...PAGE }))!
  t.same(
    third.rows,
    Array.from({ length: 250 }, (_, at) => at),
  )
  t.equal(third.isLast, true)
  t.same(asked, [{ limit: 100 }, { limit: 100, after: '99' }, { limit: 100, after: '199' }])
  t.same(
    third.marks.map(({ index }) => index),
    [0, 100, 200],
  )
})

t.test('a list that is not counted says so with its first page only', async t => {
  const { read, asked } = serverOf(150, { isCounted: false })
  const what = { wanted: 1, pageSize: 100, counting: 'later' } as const
  const first = (await readRows(read, NO_ROWS, { from: START, ...what }))!
  await readRows(read, first, { from: { index: 100, cursor: first.cursor }, ...what })
  t.same(asked, [
    { limit: 100, count: false },
    { limit: 100, after: '99' },
  ])
})

t.test('a list without cursors is read by the number of rows before', async t => {
  const { read, asked } = serverOf(150)
  const first = (await readRows(read, NO_ROWS, { from: START, ...PAGE }))!
  const second = await readRows(read, first, { from: { index: 100, cursor: undefined }, ...PAGE })
  t.equal(second?.rows.length, 150)
  t.same(asked[1], { limit: 100, offset: 100 })
})

t.test('a list that is read again keeps its length, in as few requests as the API allows', async t => {
  const { read, asked } = serverOf(5_000)
  const rows = await readUpTo(1_500, read)
  asked.length = 0
  const again = readAgain(rows, 1_400, 100)
  t.same(again, { from: START, wanted: 1_500 })
  const found = (await readRows(read, rows, { ...again, pageSize: 100, counting: 'first' }))!
  t.equal(found.rows.length, 1_500)
  t.same(asked, [{ limit: MOST_AT_ONCE }, { limit: 500, after: '999' }])
})

t.test(
  'of a very long list only what is near the window is read again, and the rows before it stay',
  async t => {
    const server = serverOf(9_000)
    const rows = await readUpTo(MOST_READ_AGAIN + 1_000, server.read)
    server.asked.length = 0
    server.insertBefore(2_500)
    const again = readAgain(rows, 2_600, 100)
    t.equal(again.from.index, 2_500, 'a page before what is seen')
    const found = (await readRows(server.read, rows, { ...again, pageSize: 100, counting: 'first' }))!
    t.equal(server.asked.length, 1)
    t.same(found.rows.slice(0, 2_500), rows.rows.slice(0, 2_500))
    t.equal(found.rows[2_500], 2_499.5, 'what is new is there')
    t.equal(found.rows.length, 3_500)
    t.equal(found.marks.at(-1)?.index, 2_500, 'what began after it is read anew')
  },
)

t.test('a short list is read again from its beginning, wherever its window is', t => {
  t.same(readAgain(NO_ROWS, 0, 100), { from: START, wanted: 100 }, 'an empty one too')
  const marks = [0, 100, 200].map(index => ({ index, cursor: String(index) }))
  const rows = { rows: Array.from({ length: 300 }), marks, cursor: undefined }
  t.same(readAgain(rows, 250, 100), { from: START, wanted: 300 })
  t.end()
})

t.test('a search without matches is paused after a few empty pages', async t => {
  let reads = 0
  const read = async (): Promise<Listed<number>> => {
    reads += 1
    return { data: [], pagination: { total: 0, has_more: true, next_cursor: String(reads) } }
  }
  const found = (await readRows(read, NO_ROWS, { from: START, ...PAGE }))!
  t.equal(reads, MAX_BARREN)
  t.match(found, { rows: [], isPaused: true, isLast: false, cursor: String(MAX_BARREN) })
  const onward = (await readRows(read, found, { from: { index: 0, cursor: found.cursor }, ...PAGE }))!
  t.equal(reads, 2 * MAX_BARREN, 'and goes on where it was')
  t.equal(onward.cursor, String(2 * MAX_BARREN))
})

t.test('an answer that nobody waits for any more is dropped, and nothing is read after it', async t => {
  const { read, asked } = serverOf(5_000)
  const what = { from: START, wanted: 3_000, pageSize: 100, counting: 'first' } as const
  t.equal(await readRows(read, NO_ROWS, what, () => false), undefined)
  t.equal(asked.length, 1)
})

const ROW = 42
const windowAt = (top: number) => ({ top, height: 900, rowHeight: ROW })

t.test('only rows near the window are in the document', t => {
  for (const top of [0, 1, 41, 42, 500, 4_200, 41_999]) {
    const { first, last } = rowsIn(windowAt(top), 1_000)
    t.ok(first <= top / ROW, `${top}: from above the window`)
    t.ok(last >= Math.min(1_000, (top + 900) / ROW), `${top}: to below it`)
    t.ok(last - first < 70, `${top}: and few others`)
  }
  t.same(rowsIn(windowAt(0), 3), { first: 0, last: 3 })
  t.same(rowsIn(windowAt(0), 0), { first: 0, last: 0 })
  t.end()
})

t.test('a list that became shorter than where it is scrolled to has no rows from beyond its end', t => {
  const { first, last } = rowsIn(windowAt(100_000), 50)
  t.ok(first <= 50 && last === 50)
  t.end()
})

t.test('small scrolling changes no row of the document', t => {
  const before = rowsIn(windowAt(ROW * 80), 1_000)
  t.same(rowsIn(windowAt(ROW * 80 + 20), 1_000), before)
  t.not(rowsIn(windowAt(ROW * 90), 1_000).first, before.first)
  t.end()
})

t.test('the next page is read before the last row is reached', t => {
  t.ok(isNearEnd(70, 100))
  t.notOk(isNearEnd(50, 100))
  t.ok(isNearEnd(0, 0), 'nothing is read yet')
  t.end()
})

const keys = Array.from({ length: 200 }, (_, at) => `row ${at}`)

t.test('rows that come above the window move it by their height, so that what is read stays', t => {
  const anchor = anchorIn(windowAt(ROW * 50), keys)!
  t.same(anchor, { key: 'row 50', index: 50 })
  t.equal(shiftOf(anchor, ['new', 'newer', ...keys]), 2)
  t.equal(shiftOf(anchor, keys.slice(3)), -3, 'and rows that go, the other way')
  t.equal(shiftOf(anchor, [...keys, 'below']), 0)
  t.equal(
    shiftOf(
      anchor,
      keys.filter(key => key !== 'row 50'),
    ),
    0,
    'the row itself may go',
  )
  t.equal(shiftOf(anchor, []), 0)
  t.end()
})

t.test('at the top of a list new rows are seen', t => {
  t.equal(anchorIn(windowAt(0), keys), undefined)
  t.equal(anchorIn(windowAt(ROW * 500), keys), undefined, 'beyond the end there is no row')
  t.equal(anchorIn(windowAt(1), keys)?.index, 1, 'a row that is cut off is not the first')
  t.end()
})

/** Followers by name, and which of them were read. */
function followersOf(...names: readonly string[]) {
  const reads: string[] = []
  const followers = names.map((name): Follower<string> => ({
    topics: [name, `${name} details`],
    read: () => reads.push(name),
    pauseMs: 1_000,
    pollMs: 15_000,
    isDue: false,
    readAt: 0,
  }))
  return { followers, taken: () => reads.splice(0) }
}

t.test('a change is read by who shows records of its kind, and once', t => {
  const { followers, taken } = followersOf('lists', 'messages')
  markChanged(followers, ['lists details', 'queue'])
  readDue(followers, 5_000, true)
  t.same(taken(), ['lists'])
  readDue(followers, 10_000, true)
  t.same(taken(), [], 'nothing more has changed')
  t.end()
})

t.test('changes in quick succession are read together, after the pause', t => {
  const { followers, taken } = followersOf('lists')
  markChanged(followers, ['lists'])
  readDue(followers, 2_000, true)
  t.same(taken(), ['lists'])
  for (const now of [2_100, 2_500, 2_900]) {
    markChanged(followers, ['lists'])
    readDue(followers, now, true)
  }
  t.same(taken(), [])
  readDue(followers, 3_000, true)
  t.same(taken(), ['lists'], 'the last change is not lost')
  t.end()
})

t.test('once the stream begins everything is read, as changes may have been missed', t => {
  const { followers, taken } = followersOf('lists', 'messages')
  markAll(followers)
  readDue(followers, 1_000, true)
  t.same(taken(), ['lists', 'messages'])
  t.end()
})

t.test('without a stream, screens are read again after a while', t => {
  const { followers, taken } = followersOf('lists')
  readDue(followers, 14_999, false)
  t.same(taken(), [])
  readDue(followers, 15_000, false)
  t.same(taken(), ['lists'])
  readDue(followers, 60_000, true)
  t.same(taken(), [], 'with one they are not')
  t.end()
})

t.test('all that match are selected along the cursor, also those that were never shown', async t => {
  const server = serverOf(2_401)
  const noted: number[] = []
  const all = await readAll(server.read, { most: 100_000, note: n => noted.push(n), isCurrent: () => true })
  t.equal(new Set(all).size, 2_401)
  t.same(noted, [1_000, 2_000, 2_401])
  t.ok(
    server.asked.every(({ count }) => count === false),
    'nothing is counted again',
  )
  t.equal(
    (await readAll(serverOf(2_401).read, { most: 1_500, note: () => {}, isCurrent: () => true }))?.length,
    1_500,
  )
  t.equal(await readAll(serverOf(10).read, { most: 100, note: () => {}, isCurrent: () => false }), undefined)
})
