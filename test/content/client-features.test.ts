/** Which features of a mail some client lacks, and which client a User-Agent is. */
import t from 'tap'
import { FeatureFinder, featureOf } from '../../src/content/clients/client-features.js'
import { CLIENT_NAMES, clientOf } from '../../src/content/clients/mail-clients.js'

function inSheet(css: string): string[] {
  const finder = new FeatureFinder()
  finder.addSheet(css)
  return finder.found().toSorted()
}

function inStyle(style: string): string[] {
  const finder = new FeatureFinder()
  finder.addElement('p', { style })
  return finder.found().toSorted()
}

t.test('declarations are found by property, value, function and unit', async t => {
  t.same(inStyle('display: inline-flex'), ['css-display-flex'])
  t.same(inStyle('display:block; color: #123; margin: 0 auto'), [])
  t.same(inStyle('color: var(--main, red)'), ['css-variables'])
  t.same(inStyle('background: #fff url("a.png")'), ['css-background-image'])
  t.same(inStyle('width: min(100%, 20rem) !important'), ['css-function-min', 'css-unit-rem'])
  t.same(inStyle('color: #1rem; font-family: x5rem'), [], 'colours and names hold no units')
})

t.test('style sheets are found by rule, media feature and selector', async t => {
  t.same(inSheet('@media (prefers-color-scheme: dark) { p { opacity: .5 } }'), [
    'css-at-media',
    'css-at-media-prefers-color-scheme',
    'css-opacity',
  ])
  t.same(inSheet('@import url(a.css); @font-face { font-family: X; src: url(x.woff) }'), [
    'css-at-font-face',
    'css-at-import',
  ])
  t.same(inSheet('a:hover, li:nth-child(2), p:before {}'), [
    'css-pseudo-class-hover',
    'css-pseudo-class-nth-child',
    'css-pseudo-element-before',
  ])
  t.same(inSheet('/* a:hover { opacity: 0 } */ p { color: red'), [])
})

t.test('elements, attributes and image formats are found', async t => {
  const finder = new FeatureFinder()
  finder.addElement('video', { src: 'a.mp4' })
  finder.addElement('link', { rel: 'preconnect' })
  finder.addElement('img', { src: 'https://x.test/a.webp?b=c', loading: 'lazy' })
  finder.addElement('img', { src: 'data:image/png;base64,AAAA' })
  t.same(finder.found().toSorted(), ['html-loading-attribute', 'html-video', 'image-base64', 'image-webp'])
  t.same(featureOf('image-webp')?.lacking, ['outlook-windows'])
  t.equal(featureOf('html-script')?.lacking.length, Object.keys(CLIENT_NAMES).length)
})

t.test('a client is known by its User-Agent, or by the proxy that loads images for it', async t => {
  const mac = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)'
  for (const [client, agent] of [
    ['gmail', 'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)'],
    ['yahoo', 'YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html'],
    [
      'outlook-windows',
      'Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; WOW64; Trident/7.0; Microsoft Outlook 16.0.4266; ms-office; MSOffice 16)',
    ],
    ['outlook-mobile', 'Outlook-iOS/723.4027091.prod.iphone (4.28.0)'],
    ['thunderbird', 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.5.0'],
    ['apple-mail', mac],
    [
      'apple-mail',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
    ],
    ['other', `${mac} Version/18.5 Safari/605.1.15`],
    ['other', ''],
  ] as const)
    t.equal(clientOf(agent), client, agent)
})
