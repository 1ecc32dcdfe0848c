/**
 * Programs that open mail and follow links before, or instead of, the person it is for. Data alone; `judge-visits.ts` goes by it.
 *
 * A program that says who it is, is found by that. A scanner that poses as a browser is found by its network, as far as its maker
 * publishes it; what no list knows is found by what it does. Programs by which people open mail on purpose (curl, a library)
 * are not in here.
 */
export interface KnownMachine {
  readonly name: string
  readonly agent?: RegExp
  /** CIDR. */
  readonly networks?: readonly string[]
}

export const KNOWN_MACHINES: readonly KnownMachine[] = [
  // Loads all pictures of all mail, whether it is opened or not; it says no more of itself than this.
  { name: 'Apple Mail Privacy Protection', agent: /^Mozilla\/5\.0$/ },
  // Loads pictures for Gmail, some of them before anybody looks; who looked cannot be told.
  { name: 'Google image proxy', agent: /GoogleImageProxy|ggpht\.com/ },
  { name: 'Gmail prefetch', agent: /Chrome\/42\.0\.2311\.135 Safari\/537\.36 Edge\/12\.246 Mozilla\/5\.0/ },
  { name: 'Yahoo mail proxy', agent: /YahooMailProxy|Yahoo! Slurp/ },
  { name: 'Microsoft previews', agent: /SkypeUriPreview|BingPreview|Microsoft Office Existence Discovery/ },
  // Exchange Online Protection, to which Safe Links belongs.
  {
    name: 'Outlook Safe Links',
    networks: ['40.92.0.0/15', '40.107.0.0/16', '52.100.0.0/14', '104.47.0.0/17', '2a01:111:f403::/48'],
  },
  { name: 'Barracuda', agent: /Barracuda/i, networks: ['64.235.144.0/20', '209.222.80.0/21'] },
  {
    name: 'Proofpoint',
    agent: /Proofpoint/i,
    networks: ['67.231.144.0/20', '148.163.128.0/19', '208.84.64.0/22'],
  },
  {
    name: 'Mimecast',
    agent: /Mimecast/i,
    networks: ['91.220.42.0/24', '103.13.69.0/24', '146.101.78.0/24', '195.130.217.0/24', '207.211.30.0/24'],
  },
  { name: 'Cisco Secure Email', agent: /IronPort/i, networks: ['68.232.128.0/19'] },
  {
    name: 'Symantec Email Security',
    networks: [
      '67.219.240.0/20',
      '85.158.136.0/21',
      '193.109.254.0/23',
      '195.245.230.0/23',
      '216.82.240.0/20',
    ],
  },
  { name: 'Trend Micro', agent: /TrendMicro|TMSPS/i, networks: ['150.70.0.0/16'] },
  {
    name: 'Forcepoint',
    networks: ['85.115.32.0/19', '86.111.216.0/21', '116.50.56.0/21', '208.87.232.0/21'],
  },
  { name: 'link previews', agent: /facebookexternalhit|WhatsApp\/|TelegramBot|Slackbot|Slack-ImgProxy/ },
  { name: 'crawlers', agent: /bot\b|crawler|spider|HeadlessChrome|PhantomJS/i },
]
