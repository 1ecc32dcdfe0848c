/** The guide to webhooks, with programs that verify signatures; the tests run them (`docs/webhooks.md` has the same). Pure. */

/** By language of the reference's samples. */
export const SIGNATURE_CHECKS = {
  sh: `# is_from_postroad BODY_FILE SIGNATURE SECRET
is_from_postroad() {
  now=\${4:-$(date +%s)}
  t=$(printf %s "$2" | tr , '\\n' | sed -n 's/^t=\\([1-9][0-9]\\{0,11\\}\\)$/\\1/p' | head -n 1)
  [ -n "$t" ] && [ $((now - t)) -le 300 ] && [ $((t - now)) -le 300 ] || return 1
  v1=$({ printf '%s.' "$t"; cat "$1"; } | openssl dgst -sha256 -hmac "$3" -r | cut -d ' ' -f 1)
  printf %s "$2" | tr , '\\n' | grep -qx "v1=$v1"
}`,
  node: `import { createHmac, timingSafeEqual } from 'node:crypto'

export function isFromPostroad(body, signature, secret, now = Date.now() / 1000) {
  const fields = signature.split(',').map(field => field.split('='))
  const timestamp = fields.find(([name]) => name === 't')?.[1] ?? ''
  if (!(Math.abs(now - Number(timestamp)) <= 300)) return false
  const expected = createHmac('sha256', secret).update(\`\${timestamp}.\`).update(body).digest()
  return fields
    .filter(([name]) => name === 'v1')
    .map(([, hex]) => Buffer.from(hex, 'hex'))
    .some(given => given.length === expected.length && timingSafeEqual(given, expected))
}`,
  python: `import hashlib, hmac, time

def is_from_postroad(body: bytes, signature: str, secret: str, now: float | None = None) -> bool:
    fields = [field.split("=", 1) for field in signature.split(",") if "=" in field]
    timestamp = next((value for name, value in fields if name == "t"), "")
    if not timestamp.isdecimal() or abs((now or time.time()) - int(timestamp)) > 300:
        return False
    expected = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return any(name == "v1" and hmac.compare_digest(value.encode(), expected.encode()) for name, value in fields)`,
  php: `function isFromPostroad(string $body, string $signature, string $secret, ?int $now = null): bool {
    preg_match('/(?:^|,)t=(\\d+)/', $signature, $time);
    preg_match_all('/(?:^|,)v1=([0-9a-f]{64})/', $signature, $given);
    $timestamp = $time[1] ?? '';
    if ($timestamp === '' || abs(($now ?? time()) - (int) $timestamp) > 300) return false;
    $expected = hash_hmac('sha256', "$timestamp.$body", $secret);
    foreach ($given[1] as $one) if (hash_equals($expected, $one)) return true;
    return false;
}`,
  go: `func IsFromPostroad(body []byte, signature, secret string, now time.Time) bool {
	var timestamp string
	var given []string
	for _, field := range strings.Split(signature, ",") {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "t":
			timestamp = value
		case "v1":
			given = append(given, value)
		}
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Unix() - seconds; err != nil || age > 300 || age < -300 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	for _, one := range given {
		if hmac.Equal([]byte(one), expected) {
			return true
		}
	}
	return false
}`,
} as const

const checks = Object.entries(SIGNATURE_CHECKS).map(
  ([language, text]) => `\`\`\`${language} Verify a signature\n${text}\n\`\`\``,
)

export const WEBHOOK_GUIDE = {
  title: 'Webhooks',
  about: 'Receive events as signed HTTP requests, and verify them.',
  text: ({ sample }: { readonly sample: (operationId: string) => string }): string => `
A webhook sends an HTTP POST with a signed JSON body to your URL each time one kind of event happens. Create one per event:

${sample('createWebhook')}

The response contains the \`secret\` (\`whsec_...\`), which is not shown again. [Test it](/docs/api/webhooks#sendWebhookTest) at once with an example. All events and their fields are listed
[below the operations](/docs/api/webhooks#events).

## The request

\`\`\`http
POST /postroad HTTP/1.1
Content-Type: application/json
X-Service-Event: email.delivered
X-Service-Webhook-Id: 019b8d99-6900-7000-8000-00000000000a
X-Service-Delivery-Id: 019b8d99-6900-7000-8000-00000000000b
X-Service-Signature: t=1767607200,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd
webhook-id: 019b8d99-6900-7000-8000-00000000000b
webhook-timestamp: 1767607200
webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=

{"event":"email.delivered","timestamp":"2026-01-05T10:00:00.000Z","data":{...}}
\`\`\`

## Verify the signature

Read \`t\` and the \`v1\` values from \`X-Service-Signature\`. Compute HMAC-SHA256 of \`t\`, a dot and the body, with the body exactly as received and the whole secret including
\`whsec_\` as the key. Compare it in lowercase hex with each \`v1\` in constant time, and reject requests older than 300 seconds.

${checks.join('\n\n')}

For 24 hours after a [rotation of the secret](/docs/api/webhooks#rotateWebhookSecret) there are two \`v1\` values, one per secret. Libraries for
[Standard Webhooks](https://www.standardwebhooks.com) verify \`webhook-id\`, \`webhook-timestamp\` and \`webhook-signature\` with the same secret.

## Respond

- A 2xx response within 15 seconds is success. Respond first, then process.
- Anything else, including a redirect, is a failure. It is retried after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, each varied by a tenth; \`Retry-After\` is honored.
- 410 disables the webhook at once, and so do five days of nothing but failures. [Enable it](/docs/api/webhooks#restoreWebhook) again when the receiver is back.
- An event can arrive more than once, and events can arrive out of order. All attempts of a delivery carry the same \`X-Service-Delivery-Id\`: store it to ignore duplicates.

## Missed events

[Deliveries](/docs/api/webhooks#listWebhookDeliveries) are logged with requests, responses and times. Redeliver [one](/docs/api/webhooks#replayWebhookDelivery), or
[everything that failed](/docs/api/webhooks#replayFailedWebhookDeliveries) since a moment.

Targets are http or https on the public Internet; the operator must allow private networks (\`webhooks.allow_networks\`).
`,
}
