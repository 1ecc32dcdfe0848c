/**
 * Programs that fetch pixels or follow links, and whether such a request means that a person reads the message. Data for
 * `bot-detection.ts`.
 *
 * The first matching row decides. Honest programs are matched by User-Agent; scanners that pose as browsers by their published
 * networks. Anything unknown counts as a person unless it behaves like a scanner.
 * `test/tracking/known-programs.test.ts` has real User-Agents for each row.
 */
export interface KnownProgram {
  readonly name: string
  readonly by: 'person' | 'machine'
  readonly agent?: RegExp
  /** CIDR. */
  readonly networks?: readonly string[]
}

export const KNOWN_PROGRAMS: readonly KnownProgram[] = [
  // Fetch when the message is displayed, on behalf of the reader's program.
  { name: 'Gmail image proxy', by: 'person', agent: /\bGoogleImageProxy\b|\bggpht\.com\b/ },
  { name: 'Yahoo Mail proxy', by: 'person', agent: /\bYahoo ?MailProxy\b/i },

  // Fetches new mail before it is opened, posing as a malformed Edge of 2015.
  {
    name: 'Gmail prefetcher',
    by: 'machine',
    agent: /Chrome\/42\.0\.2311\.135 Safari\/537\.36 Edge\/12\.246(?: Mozilla\/5\.0)?$/,
  },
  // Loads the images of all mail, opened or not; this is its entire User-Agent.
  { name: 'Apple Mail Privacy Protection', by: 'machine', agent: /^Mozilla\/5\.0$/ },
  { name: 'no User-Agent', by: 'machine', agent: /^\s*$/ },

  {
    name: 'command-line programs',
    by: 'machine',
    agent: /^(?:curl|wget|aria2|httpie|lynx|w3m|elinks)\b|\bWindowsPowerShell\/|\bPowerShell\/\d/i,
  },
  {
    name: 'Python libraries',
    by: 'machine',
    agent: /^(?:python-|python\/|python$)|\b(?:aiohttp|urllib3|httpx|scrapy)\//i,
  },
  { name: 'Go library', by: 'machine', agent: /^(?:Go-http-client|go-resty|fasthttp|Go \d)/ },
  {
    name: 'Java libraries',
    by: 'machine',
    agent:
      /^(?:Java|Java-http-client|Apache-HttpClient|Apache-HttpAsyncClient|AHC|okhttp|Jersey|Jetty|ReactorNetty)\b/i,
  },
  {
    name: 'JavaScript libraries',
    by: 'machine',
    agent: /^(?:axios|node|node-fetch|undici|got|needle|superagent|node-superagent|Deno|Bun)(?:\/|\s|$)/i,
  },
  {
    name: 'PHP libraries',
    by: 'machine',
    agent: /^(?:GuzzleHttp|PHP|Symfony HttpClient|WordPress)(?:\/|\s|$)/i,
  },
  {
    name: 'Ruby libraries',
    by: 'machine',
    agent: /^(?:Ruby|Faraday|rest-client|HTTParty|http\.rb|Typhoeus)\b/i,
  },
  {
    name: 'other libraries',
    by: 'machine',
    agent:
      /^(?:libwww-perl|LWP|lua-resty-http|reqwest|hyper|ureq|Dart|RestSharp|PostmanRuntime|insomnia|WinHttp)\b|\blibwww-perl\//i,
  },

  {
    name: 'Microsoft previews',
    by: 'machine',
    agent: /SkypeUriPreview|BingPreview|Microsoft Office Existence Discovery/,
  },
  // Networks of Exchange Online Protection, which includes Safe Links.
  {
    name: 'Outlook Safe Links',
    by: 'machine',
    networks: ['40.92.0.0/15', '40.107.0.0/16', '52.100.0.0/14', '104.47.0.0/17', '2a01:111:f403::/48'],
  },
  {
    name: 'Barracuda',
    by: 'machine',
    agent: /Barracuda/i,
    networks: ['64.235.144.0/20', '209.222.80.0/21'],
  },
  {
    name: 'Proofpoint',
    by: 'machine',
    agent: /Proofpoint/i,
    networks: ['67.231.144.0/20', '148.163.128.0/19', '208.84.64.0/22'],
  },
  {
    name: 'Mimecast',
    by: 'machine',
    agent: /Mimecast/i,
    networks: ['91.220.42.0/24', '103.13.69.0/24', '146.101.78.0/24', '195.130.217.0/24', '207.211.30.0/24'],
  },
  { name: 'Cisco Secure Email', by: 'machine', agent: /IronPort/i, networks: ['68.232.128.0/19'] },
  {
    name: 'Symantec Email Security',
    by: 'machine',
    networks: [
      '67.219.240.0/20',
      '85.158.136.0/21',
      '193.109.254.0/23',
      '195.245.230.0/23',
      '216.82.240.0/20',
    ],
  },
  { name: 'Trend Micro', by: 'machine', agent: /TrendMicro|TMSPS/i, networks: ['150.70.0.0/16'] },
  {
    name: 'Forcepoint',
    by: 'machine',
    networks: ['85.115.32.0/19', '86.111.216.0/21', '116.50.56.0/21', '208.87.232.0/21'],
  },
  {
    name: 'link previews',
    by: 'machine',
    agent:
      /facebookexternal(?:hit|ua)|WhatsApp\/|TelegramBot|Slackbot|Slack-ImgProxy|GoogleMessages\/|Snap URL Preview/,
  },
  {
    name: 'link checkers',
    by: 'machine',
    agent: /HubSpot Connect|^cortex\/|^Amazon CloudFront$|W3C-checklink/,
  },
  { name: 'crawlers', by: 'machine', agent: /bot\b|crawler|spider|Yahoo! Slurp|HeadlessChrome|PhantomJS/i },
]
