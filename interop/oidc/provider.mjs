// An OpenID provider with two users, over HTTPS: `node provider.mjs PORT CERTIFICATE KEY`, with `oidc-provider` beside it.
import { createServer } from 'node:https';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Provider from 'oidc-provider';

const [port, certificate, key] = process.argv.slice(2);
const issuer = `https://localhost:${port}`;
const groups = { jane: ['devs', 'ops'], joe: ['guests'] };

const jwk = (kid, pair, alg) => ({ ...pair.privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' });
const provider = new Provider(issuer, {
  jwks: {
    keys: [
      jwk('rsa', generateKeyPairSync('rsa', { modulusLength: 2048 }), 'RS256'),
      jwk('ec', generateKeyPairSync('ec', { namedCurve: 'P-256' }), 'ES256'),
    ],
  },
  clients: ['RS256', 'ES256'].map((alg) => ({
    client_id: `kubectl-${alg}`,
    client_secret: 'not-a-secret',
    redirect_uris: ['https://localhost/callback'],
    id_token_signed_response_alg: alg,
  })),
  cookies: { keys: ['for tests only'] },
  conformIdTokenClaims: false,
  claims: { openid: ['sub', 'groups', 'email', 'email_verified'] },
  pkce: { required: () => false },
  findAccount: async (_, id) => ({
    accountId: id,
    claims: async () => ({ sub: id, groups: groups[id] ?? [], email: `${id}@example.org`, email_verified: id === 'jane' }),
  }),
});
provider.proxy = false;

createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, provider.callback()).listen(Number(port), '127.0.0.1', () => {
  console.log(`ready at ${issuer}`);
});
