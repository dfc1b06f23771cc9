// The same as cache-aside.js in front of a memcached, which it speaks to in its
// binary protocol.
//
//   node cache-aside-memcached.js '{"nodes": ["127.0.0.1:11211"], "readers": 200, ...}'
//
// With "wave" it only stores so many values that live equally long.
'use strict';

const memjs = require('memjs');

const o = Object.assign({
  nodes: [], // of which the first is used
  key: 'feed:1',
  readers: 200,
  connections: 10,
  cycles: 1,
  ttl: 2, // s, of the value: memcached knows no parts of a second
  takes: 400, // ms, to make it
  protect: 'none', // or 'lock'
  lockTTL: 10, // s
  poll: 50, // ms, between looks of one who waits for the lock
  wave: 0,
}, JSON.parse(process.argv[2]));

const counted = { misses: 0, stores: 0, recomputes: 0, fanIn: 0 };
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const clients = Array.from({ length: o.connections }, () => memjs.Client.create(o.nodes[0], { timeout: 10, retries: 0 }));

async function look(client) {
  const { value } = await client.get(o.key);
  if (value === null) counted.misses++;
  return value;
}

async function make(client) {
  counted.recomputes++;
  await sleep(o.takes);
  await client.set(o.key, 'value', { expires: o.ttl });
  counted.stores++;
  return 'value';
}

async function makeUnderLock(client) {
  const lock = `lock:${o.key}`;
  for (;;) {
    if (await client.add(lock, 'held', { expires: o.lockTTL })) {
      const value = await look(client) ?? await make(client);
      await client.delete(lock);
      return value;
    }
    await sleep(o.poll);
    const value = await look(client);
    if (value !== null) return value;
  }
}

async function read(reader) {
  const client = clients[reader % clients.length];
  const value = await look(client);
  if (value !== null) return value;
  counted.fanIn++;
  return o.protect === 'lock' ? makeUnderLock(client) : make(client);
}

async function main() {
  for (let i = 0; i < o.wave; i++) {
    await clients[i % clients.length].set(`user:${i}`, 'value', { expires: o.ttl });
  }
  if (o.wave === 0) await clients[0].set(o.key, 'value', { expires: o.ttl });
  for (let i = 0; o.wave === 0 && i < o.cycles; i++) {
    await sleep(1000 * (o.ttl + 1)); // the server's clock moves once a second
    await Promise.all(Array.from({ length: o.readers }, (_, reader) => read(reader)));
  }
  console.log(JSON.stringify(counted));
  clients.forEach((c) => c.close());
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
