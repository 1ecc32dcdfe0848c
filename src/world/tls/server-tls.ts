/**
 * TLS settings of all listeners: 1.3, and 1.2 with forward secrecy.
 *
 * TLS 1.2 suites need an ephemeral key exchange (ECDHE): with plain RSA, a key stolen later decrypts recorded sessions. CBC with SHA-1 comes
 * last, for old printers and scanners (RFC 9325 §4.2). Outgoing connections are not restricted: with opportunistic TLS any encryption is
 * better than none.
 */
import type { SecureContextOptions } from 'node:tls'

export const SERVER_TLS = {
  minVersion: 'TLSv1.2',
  ciphers: [
    ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
    ...['ECDHE+AESGCM', 'ECDHE+CHACHA20', 'ECDHE+AES', '!AESCCM', '!aNULL', '!aPSK'],
  ].join(':'),
  honorCipherOrder: true,
} as const satisfies SecureContextOptions
