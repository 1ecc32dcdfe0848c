/** What is read of RSS, Atom and JSON feeds, well-formed and hostile. */
import t, { type Test } from 'tap'
import { parseFeed } from '../../src/campaigns/feeds/fetch-feed.js'

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

t.test('an item is known by its guid, else its link, and once per feed', async t => {
  const items = async (inner: string) => (await read(channel(inner))).items
  const [a] = await items('<item><guid>g</guid><title>A</title><link>https://b.test/1</link></item>')
  const [b] = await items('<item><guid> g </guid><title>Other</title><link>https://b.test/2</link></item>')
  const [c] = await items('<item><title>A</title><link>https://b.test/1</link></item>')
  t.equal(a?.key, b?.key)
  t.not(a?.key, c?.key)
  const twice = '<item><guid>g</guid><title>A</title></item>'.repeat(2)
  t.equal((await items(twice)).length, 1)
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
