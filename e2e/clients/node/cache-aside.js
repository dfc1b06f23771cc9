// A cache in front of something slow, as it is written every day: look, and if
// there is nothing, make it and put it there. It knows nothing of who watches.
//
//   node cache-aside.js '{"nodes": ["127.0.0.1:6379"], "readers": 200, ...}'
//
// It primes the key, waits until it has expired and lets all readers read at
// once; then it waits until what they stored has expired, for each further
// cycle. In the end it prints, as JSON, what it counted.
'use strict';

const Redis = require('ioredis');

const o = Object.assign({
  nodes: [], // of one server, or seeds of a cluster
  cluster: false,
  key: 'feed:1',
  readers: 200,
  connections: 10,
  cycles: 1,
  ttl: 1000, // ms, of the value
  takes: 400, // ms, to make it
  protect: 'none', // or 'lock', or 'singleflight'
  lockTTL: 10000, // ms
  poll: 50, // ms, between looks of one who waits for the lock
  hold: false, // take the lock and do nothing, until killed
  give: 0, // ms after which a reader gives up; 0: never
}, JSON.parse(process.argv[2]));

const counted = { misses: 0, stores: 0, recomputes: 0, fanIn: 0, gaveUp: 0 };
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function connect() {
  const [host, port] = o.nodes[0].split(':');
  if (!o.cluster) return new Redis({ host, port: Number(port) });
  return new Redis.Cluster(o.nodes.map((n) => ({ host: n.split(':')[0], port: Number(n.split(':')[1]) })));
}

const clients = Array.from({ length: o.connections }, connect);

async function look(client) {
  const value = await client.get(o.key);
  if (value === null) counted.misses++;
  return value;
}

async function make(client) {
  counted.recomputes++;
  await sleep(o.takes);
  await client.set(o.key, 'value', 'PX', o.ttl);
  counted.stores++;
  return 'value';
}

const flights = new Map();

function makeOnce(client) {
  if (!flights.has(o.key)) {
    flights.set(o.key, make(client).finally(() => flights.delete(o.key)));
  }
  return flights.get(o.key);
}

const release = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

async function makeUnderLock(client, reader) {
  const lock = `lock:{${o.key}}`;
  const token = `${process.pid}-${reader}`;
  const until = o.give ? Date.now() + o.give : Infinity;
  while (Date.now() < until) {
    if (await client.set(lock, token, 'PX', o.lockTTL, 'NX') === 'OK') {
      if (o.hold) {
        console.log('holding');
        await sleep(1e8);
      }
      const value = await look(client) ?? await make(client);
      await client.eval(release, 1, lock, token);
      return value;
    }
    await sleep(o.poll);
    const value = await look(client);
    if (value !== null) return value;
  }
  counted.gaveUp++;
  return null;
}

async function read(reader) {
  const client = clients[reader % clients.length];
  const value = await look(client);
  if (value !== null) return value;
  counted.fanIn++;
  switch (o.protect) {
    case 'lock': return makeUnderLock(client, reader);
    case 'singleflight': return makeOnce(client);
    default: return make(client);
  }
}

async function main() {
  await Promise.all(clients.map((c) => c.ping()));
  for (let i = 0; i < o.cycles; i++) {
    if (i === 0 && o.ttl > 0) await clients[0].set(o.key, 'value', 'PX', o.ttl);
    if (o.ttl > 0) await sleep(o.ttl + 200);
    await Promise.all(Array.from({ length: o.readers }, (_, reader) => read(reader)));
  }
  console.log(JSON.stringify(counted));
  clients.forEach((c) => c.disconnect());
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
