/** What is read of RSS, Atom and JSON feeds, well-formed and hostile. */
import t, { type Test } from 'tap'
import { parseFeed } from '../../src/feeds/fetch-feed.js'

const URL_OF_FEED = 'https://blog.test/news/feed.xml'

const read = (text: string | Buffer, type = '') => parseFeed(Buffer.from(text), type, URL_OF_FEED)

async function refused(t: Test, text: string | Buffer, message: RegExp) {
  await t.rejects(read(text), { name: 'FeedError', message })
}

const channel = (inner: string) =>
  `<?xml version="1.0"?><rss version="2.0" xmlns:media="m" xmlns:dc="d" xmlns:content="c"><channel>${inner}</channel></rss>`

t.test('RSS 2.0 gives title, link, summary, author, picture and date of each item', async t => {
  const feed = await read(
    channel(`<title>Shop &amp; Co</title><link>https://blog.test/</link><description>News &lt;b&gt;daily&lt;/b&gt;</description>
      <image><title>Logo</title><url>https://blog.test/logo.png</url></image>
      <item><title>Caf&#233; &amp;eacute;</title><link>https://blog.test/one</link><guid>g1</guid>
        <pubDate>Mon, 05 Jan 2026 09:00:00 +0100</pubDate><dc:creator>Ann</dc:creator>
        <description><![CDATA[<p>First <b>bold</b> words.</p><script>no()</script><p>Second &nbsp;line</p>]]></description>
        <content:encoded><![CDATA[<img width="1" height="1" src="/count.gif"><img src="/pic.jpg">]]></content:encoded></item>
      <item><title>Two</title><guid>https://blog.test/two</guid><author>bob@blog.test (Bob)</author>
        <media:thumbnail url="https://cdn.test/t.png"/></item>`),
  )
  t.match(feed, { title: 'Shop & Co', link: 'https://blog.test/', description: 'News daily' })
  const [one, two] = feed.items
  t.match(one, {
    ...{ title: 'Café é', link: 'https://blog.test/one', summary: 'First bold words. Second line' },
    ...{ author: 'Ann', image: 'https://blog.test/pic.jpg', at: Date.UTC(2026, 0, 5, 8) },
  })
  t.match(two, {
    ...{
      title: 'Two',
      link: 'https://blog.test/two',
      author: 'Bob',
      image: 'https://cdn.test/t.png',
      at: null,
    },
  })
})

t.test('Atom gives the same, with links relative to xml:base and texts of each type', async t => {
  const feed =
    await read(`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://atom.test/a/"><title type="text">A &lt;b&gt;</title>
    <link rel="self" href="self.xml"/><link href="/home"/><author><name>Feed author</name></author>
    <entry><id>urn:1</id><title type="html">One &lt;i&gt;two&lt;/i&gt;</title><link rel="edit" href="/edit"/><link rel="alternate" href="b"/>
      <published>2026-01-04T08:00:00Z</published><updated>2026-01-06T08:00:00Z</updated><author><name>Cy</name><email>c@x.test</email></author>
      <content type="xhtml"><div><p>Some <b>text</b></p></div></content></entry>
    <entry><id>urn:2</id><title>Plain &amp;amp; simple</title><updated>2026-01-05T08:00:00Z</updated><summary>Short</summary></entry></feed>`)
  t.match(feed, { title: 'A <b>', link: 'https://atom.test/home' })
  const [newest, other] = feed.items
  t.match(newest, { title: 'Plain &amp; simple', summary: 'Short', at: Date.UTC(2026, 0, 5, 8) })
  t.match(other, {
    ...{ title: 'One two', link: 'https://atom.test/a/b', author: 'Cy', at: Date.UTC(2026, 0, 4, 8) },
    summary: 'Some text',
  })
})

t.test('JSON Feed gives the same', async t => {
  const feed = await read(
    JSON.stringify({
      ...{ version: 'https://jsonfeed.org/version/1.1', title: 'J', home_page_url: 'https://j.test/' },
      items: [
        {
          id: 7,
          url: '/seven',
          title: 'Seven',
          content_html: '<p>Hi <b>you</b></p>',
          authors: [{ name: 'Di' }],
        },
        {
          id: 'x',
          title: 4,
          content_text: 'a < b',
          image: 'javascript:alert(1)',
          date_published: '2026-01-05',
        },
        'no item',
      ],
    }),
  )
  t.match(feed.items, [
    { title: 'Seven', link: 'https://blog.test/seven', summary: 'Hi you', author: 'Di' },
    { title: 'a < b', summary: 'a < b', image: '', at: Date.UTC(2026, 0, 5) },
  ])
  t.equal(feed.items.length, 2, 'what says nothing is no item')
})

interface Written {
  readonly guid?: string
  readonly link?: string
  readonly title?: string
  readonly date?: string
}

/** An RSS item; each has the title A and no date if not said otherwise. */
function item({ guid = '', link = '', title = 'A', date = '' }: Written): string {
  const fields = { guid, link, title, pubDate: date }
  const written = Object.entries(fields).map(([name, value]) =>
    value === '' ? '' : `<${name}>${value.replaceAll('&', '&amp;')}</${name}>`,
  )
  return `<item>${written.join('')}</item>`
}

const itemsOf = async (...items: readonly Written[]) =>
  (await read(channel(`<link>https://blog.test/</link>${items.map(item).join('')}`))).items

/** Whether what one document contains is known by what another contained. */
async function isKnown(before: readonly Written[] | Written, now: Written): Promise<boolean> {
  const remembered = new Set((await itemsOf(...[before].flat())).flatMap(({ keys }) => keys))
  return (await itemsOf(now)).every(({ keys }) => keys.some(key => remembered.has(key)))
}

t.test('an item is known by its guid, whatever else changes', async t => {
  const first = { guid: 'g', link: 'https://blog.test/1', title: 'A' }
  t.ok(await isKnown(first, { guid: ' g ', link: 'https://blog.test/2', title: 'Other' }))
  t.notOk(await isKnown(first, { guid: 'h', link: 'https://blog.test/2', title: 'A' }))
  t.equal((await itemsOf(first, first)).length, 1)
})

t.test('an item whose guid changed is known by its link, whichever way that is written', async t => {
  const first = { guid: 'old', link: 'http://www.blog.test/a?id=1', title: 'A' }
  for (const link of [
    'https://www.blog.test/a?id=1',
    'https://blog.test/a?id=1',
    'https://BLOG.test/a/?id=1',
    'https://blog.test/a?utm_source=rss&id=1&utm_medium=feed',
    'https://blog.test/a?id=1&fbclid=x&gclid=y&mc_cid=z',
    'https://blog.test/a?id=1#comments',
  ])
    t.ok(await isKnown(first, { guid: 'new', link, title: 'Edited' }), link)
  for (const link of [
    'https://blog.test/a?id=2',
    'https://blog.test/a',
    'https://blog.test/a/b?id=1',
    'https://other.test/a?id=1',
    'https://blog.test:8080/a?id=1',
  ])
    t.notOk(await isKnown(first, { guid: 'new', link, title: 'A' }), link)
})

t.test('a guid that is a URL identifies as a link does', async t => {
  const guid = 'http://blog.test/?p=7'
  t.ok(await isKnown({ guid }, { guid: 'https://blog.test/?p=7&utm_source=feed' }))
  t.ok(
    await isKnown(
      { guid, link: 'https://go.test/x' },
      { guid: 'https://blog.test/?p=7', link: 'https://go.test/y' },
    ),
  )
  t.notOk(await isKnown({ guid }, { guid: 'https://blog.test/?p=8' }))
})

t.test('an item that moved with its site is known by its title and its exact date', async t => {
  const first = { guid: 'old', link: 'https://blog.test/a', date: 'Mon, 05 Jan 2026 09:00:00 GMT' }
  const moved = { guid: 'new', link: 'https://moved.test/b' }
  t.ok(await isKnown(first, { ...first, ...moved }))
  t.notOk(await isKnown(first, { ...first, ...moved, date: 'Mon, 05 Jan 2026 09:00:01 GMT' }))
  t.notOk(await isKnown(first, { ...first, ...moved, title: 'B' }))
  t.notOk(await isKnown({ ...first, date: '' }, { ...first, ...moved, date: '' }), 'without a date')
})

t.test('a link that different items share, or that is the home page, identifies none of them', async t => {
  const link = 'https://blog.test/changes'
  const [one, two] = [
    { guid: '1', title: 'One', link },
    { guid: '2', title: 'Two', link },
  ]
  t.equal((await itemsOf(one, two)).length, 2)
  t.notOk(await isKnown([one, two], { guid: '3', title: 'Three', link }))
  const anchored = (name: string) => ({ guid: name, title: name, link: `${link}#${name}` })
  t.notOk(await isKnown([anchored('v1'), anchored('v2')], anchored('v3')), 'anchors of one page')
  for (const home of ['https://blog.test/', 'https://other.test/', 'https://blog.test'])
    t.notOk(
      await isKnown({ guid: '1', title: 'One', link: home }, { guid: '2', title: 'Two', link: home }),
      home,
    )
})

t.test('two entries of one item, as feeds have while their guids change, are one', async t => {
  const entry = { title: 'A', date: 'Mon, 05 Jan 2026 09:00:00 GMT' }
  const old = { ...entry, guid: 'http://blog.test/a', link: 'http://blog.test/a' }
  const now = { ...entry, guid: 'https://blog.test/a', link: 'https://blog.test/a' }
  t.equal((await itemsOf(now, old)).length, 1)
  t.ok(await isKnown(old, now))
})

t.test('a feed whose items cannot be told apart is refused', async t => {
  const names = ['One', 'Two', 'Three']
  const same = names.map(title => item({ guid: 'blog', title, link: `https://blog.test/${title}` }))
  await refused(
    t,
    channel(same.join('')),
    /^all 3 items have the same guid or id, so new ones cannot be told/,
  )
  const linked = names.map(title => item({ title, link: 'https://blog.test/' }))
  await refused(t, channel(linked.join('')), /^all 3 items have the same link and no guid/)
  const json = { version: 'https://jsonfeed.org/version/1.1', items: names.map(title => ({ id: 1, title })) }
  await refused(t, JSON.stringify(json), /^all 3 items have the same guid or id/)
  t.equal((await read(channel(`${same[0]}${same[0]}`))).items.length, 1, 'one item twice is one item')
})

t.test('a thousand items with long links are told apart in a moment', async t => {
  const parameters = Array.from({ length: 180 }, (_, at) => `utm_${at}=1`).join('&')
  const all = Array.from({ length: 1_000 }, (_, at) => ({
    guid: `g${at}`,
    link: `https://blog.test/${at}?${parameters}`,
  }))
  const startedAt = performance.now()
  const items = await itemsOf(...all)
  t.equal(items.filter(({ link }) => link !== '').length, 1_000)
  t.ok(performance.now() - startedAt < 5_000)
})

t.test('entities are not expanded, and nothing is loaded', async t => {
  const doctype = `<!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;"><!ENTITY x SYSTEM "file:///etc/passwd">]>`
  const feed = await read(
    `<?xml version="1.0"?>${doctype}<rss><channel><item><title>t</title><description>&b;&b; &x;</description></item></channel></rss>`,
  )
  t.equal(feed.items[0]?.summary, '&b;&b; &x;')
})

t.test('links and pictures are http or https, or missing', async t => {
  const feed = await read(
    channel(`<item><guid>javascript:1</guid><title>t</title><link>javascript:alert(1)</link>
      <description>&lt;img src="data:image/png;base64,AA"&gt;</description></item>`),
  )
  t.match(feed.items, [{ link: '', image: '' }])
})

t.test('texts are one line without control characters, and cut at a word', async t => {
  const long = 'word '.repeat(1_000)
  const [item] = (
    await read(channel(`<item><title>a\nb\u0085 c</title><description>${long}</description></item>`))
  ).items
  t.equal(item?.title, 'a b c')
  t.match(item?.summary, /^(word ){98}word…$/)
})

t.test('the encoding is that of the byte order mark, the header or the XML declaration', async t => {
  const latin = Buffer.from(
    '<?xml version="1.0" encoding="ISO-8859-1"?><rss><channel><title>Caf\xe9</title></channel></rss>',
    'latin1',
  )
  t.equal((await read(latin)).title, 'Café')
  const utf16 = Buffer.concat([
    Buffer.from([0xff, 0xfe]),
    Buffer.from('<rss><channel><title>Žluťoučký</title></channel></rss>', 'utf16le'),
  ])
  t.equal((await read(utf16)).title, 'Žluťoučký')
  const windows = Buffer.from('<rss><channel><title>\xcf\xf0\xe8</title></channel></rss>', 'latin1')
  t.equal((await read(windows, 'text/xml; charset=windows-1251')).title, 'При')
})

t.test('what is no feed is refused, saying why', async t => {
  await refused(t, '', /empty/)
  await refused(t, 'hello', /not a feed: neither XML nor JSON/)
  await refused(t, '<!doctype html><html><body>Hi</body></html>', /not a feed: the document is <html>/)
  await refused(t, '{"items": []}', /without the "version" of JSON Feed/)
  await refused(t, '{"version": ', /not well-formed/)
  await refused(t, '{"version": "https://jsonfeed.org/version/1"}', /no list "items"/)
  await refused(t, '<rss><channel><item><title>cut</title>', /ends early: <rss> is not closed/)
  await refused(t, `<rss>${'<a>'.repeat(200)}`, /nested more than 100 deep/)
})

t.test('a feed of many or large items is read within bounds', async t => {
  const items = Array.from(
    { length: 5_000 },
    (_, at) => `<item><guid>${at}</guid><title>${at}</title></item>`,
  )
  t.equal((await read(channel(items.join('')))).items.length, 1_000)
  const deep = '&lt;b&gt;'.repeat(100_000)
  t.match(await read(channel(`<item><title>t</title><description>${deep}text</description></item>`)), {
    items: [{ title: 't' }],
  })
})

t.test('prototype names and elements of other vocabularies are ignored', async t => {
  const [item] = (
    await read(
      channel(`<item><guid>1</guid><constructor>x</constructor><toString>y</toString><__proto__>z</__proto__>
        <media:group><media:title>Inner</media:title></media:group><title>T</title></item>`),
    )
  ).items
  t.match(item, { title: 'T', summary: '' })
})
