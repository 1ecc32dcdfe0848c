/** Each row of the table of programs, by the real User-Agents and addresses that it is for; and what counts as a burst. */
import t from 'tap'
import {
  isBurst,
  isKnownMachine,
  isNearlyAll,
  countLinks,
  KNOWN_PROGRAMS,
} from '../../src/tracking/visits/bot-detection.js'
import type { Visit } from '../../src/tracking/visits/visit-store.js'

const BROWSER =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36'

const visit = (more: Partial<Visit>): Visit => ({
  ...{ kind: 'open', messageId: 'm', at: 0, address: '198.51.100.7', userAgent: BROWSER, isHead: false },
  ...more,
})

/** By the name of the row. */
const AGENTS: Readonly<Record<string, readonly string[]>> = {
  'Gmail image proxy': [
    'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)',
    'Mozilla/5.0 (via ggpht.com)',
  ],
  'Yahoo Mail proxy': ['YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html'],
  'Gmail prefetcher': [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246',
  ],
  'Apple Mail Privacy Protection': ['Mozilla/5.0'],
  'no User-Agent': ['', ' '],
  'command-line programs': [
    'curl/8.5.0',
    'Wget/1.21.4',
    'Wget/1.20.3 (linux-gnu)',
    'HTTPie/3.2.2',
    'Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.19041.4894',
    'Mozilla/5.0 (Windows NT 10.0; Microsoft Windows 10.0.19045; en-US) PowerShell/7.4.2',
  ],
  'Python libraries': [
    'python-requests/2.31.0',
    'python-httpx/0.27.0',
    'Python-urllib/3.11',
    'Python/3.9 aiohttp/3.8.1',
    'Scrapy/2.11.2 (+https://scrapy.org)',
  ],
  'Go library': ['Go-http-client/1.1', 'Go-http-client/2.0', 'Go 1.1 package http'],
  'Java libraries': [
    'Java/17.0.2',
    'Java-http-client/21.0.1',
    'Apache-HttpClient/4.5.14 (Java/17.0.2)',
    'AHC/2.1',
    'okhttp/4.10.0',
  ],
  'JavaScript libraries': [
    'axios/1.6.8',
    'node',
    'undici',
    'node-fetch/1.0 (+https://github.com/bitinn/node-fetch)',
    'got (https://github.com/sindresorhus/got)',
    'Deno/1.44.0',
    'Bun/1.1.13',
  ],
  'PHP libraries': ['GuzzleHttp/7', 'PHP/8.1.2', 'WordPress/6.5.2; https://blog.example'],
  'Ruby libraries': [
    'Ruby',
    'Faraday v2.9.0',
    'rest-client/2.1.0 (linux x86_64) ruby/3.2.2p53',
    'http.rb/5.2.0',
  ],
  'other libraries': [
    'libwww-perl/6.67',
    'lua-resty-http/0.10 (Lua) ngx_lua/10019',
    'reqwest/0.12.4',
    'PostmanRuntime/7.36.3',
    'Dart/3.3 (dart:io)',
  ],
  'Microsoft previews': [
    'Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com',
    'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; BingPreview/1.0b) Chrome/115.0.0.0 Safari/537.36',
    'Microsoft Office Existence Discovery',
  ],
  Barracuda: ['Barracuda Sentinel (EE)'],
  Proofpoint: ['Proofpoint URL Defense'],
  Mimecast: ['Mimecast/1.0'],
  'Cisco Secure Email': ['Mozilla/5.0 (compatible; IronPort)'],
  'Trend Micro': ['TMSPS/1.0'],
  'link previews': [
    'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)',
    'WhatsApp/2.23.20.0',
    'TelegramBot (like TwitterBot)',
    'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)',
    'GoogleMessages/20',
    'Snap URL Preview Service; bot; snapchat; https://developers.snap.com/robots',
  ],
  'link checkers': ['HubSpot Connect', 'cortex/1.0', 'Amazon CloudFront', 'W3C-checklink/4.81'],
  crawlers: [
    'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
    'Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)',
    'Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0.6099.28 Safari/537.36',
  ],
}

/** One for each row that has networks. */
const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  'Outlook Safe Links': ['40.107.1.2', '52.100.3.4', '2a01:111:f403::1'],
  Barracuda: ['209.222.82.1'],
  Proofpoint: ['148.163.130.1'],
  Mimecast: ['207.211.30.9'],
  'Cisco Secure Email': ['68.232.130.1'],
  'Symantec Email Security': ['85.158.137.1'],
  'Trend Micro': ['150.70.1.1'],
  Forcepoint: ['85.115.40.1'],
}

for (const { name, by, agent, networks } of KNOWN_PROGRAMS)
  t.test(`${name}: a visit counts as one by a ${by}`, async t => {
    const agents = AGENTS[name] ?? []
    const addresses = ADDRESSES[name] ?? []
    t.equal(agents.length > 0, agent !== undefined, 'with a User-Agent, where it is known by that')
    t.equal(addresses.length > 0, networks !== undefined, 'with an address, where it is known by that')
    for (const userAgent of agents) {
      const first = KNOWN_PROGRAMS.find(row => row.agent?.test(userAgent))
      t.equal(first?.name, name, userAgent)
      t.equal(isKnownMachine(visit({ userAgent })), by === 'machine', userAgent)
    }
    for (const address of addresses) t.equal(isKnownMachine(visit({ address })), by === 'machine', address)
  })

t.test('unknown mail programs and browsers count as people', async t => {
  const people = [
    BROWSER,
    'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.5.0',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
    'Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; WOW64; Trident/7.0; Microsoft Outlook 16.0.5134; ms-office; MSOffice 16)',
    'Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.17928; Pro)',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0',
    'Dalvik/2.1.0 (Linux; U; Android 14; Pixel 8 Build/AP1A.240405.002)',
  ]
  for (const userAgent of people) t.equal(isKnownMachine(visit({ userAgent })), false, userAgent)
  t.equal(isKnownMachine(visit({ isHead: true })), true, 'no reader sends HEAD')
})

t.test('a burst is a few links right after delivery, nearly all links, or too many', async t => {
  t.equal(isBurst(3, 10_000), true)
  t.equal(isBurst(3, -500), true, 'scanned before the server answered')
  t.equal(isBurst(2, 0), false)
  t.equal(isBurst(3, 10_001), false)
  t.equal(isBurst(3, 40_000), false)
  t.equal(isBurst(4, 40_000), undefined, 'depends on how many the mail has')
  t.equal(isBurst(20, 86_400_000), true)
  t.equal(isNearlyAll(4, 5), true)
  t.equal(isNearlyAll(4, 6), false)
  t.equal(isNearlyAll(5, 0), false, 'not known')
})

t.test('tracked links in the source are counted once each, without unsubscribe links', async t => {
  const html =
    '<a href="https://x.example/a">1</a><a class=b href=https://x.example/b>2</a><A HREF=\'https://x.example/a\'>1</A>' +
    '<!-- <a href="https://x.example/c">no</a> --><a href="mailto:a@x.example">no</a><a href="#top">no</a>' +
    '<a href="{{unsubscribe_url}}">no</a><a href="{{ offer_url }}">3</a><img src="https://x.example/d">'
  t.equal(countLinks(html), 3)
  t.equal(countLinks(''), 0)
})
