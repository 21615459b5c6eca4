// Each worker of Node's cluster leases a node and ends with the lease: doc/applications.md.
// The library scru64 reads the global variable: leave out initialize().
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const args = ['8', `app ${process.pid}`, 'sh', '-c', 'echo $SCRU64_NODE_SPEC; exec cat'];
const lease = spawn('examples/with_lease', args, { stdio: ['pipe', 'pipe', 'inherit'] });
lease.on('exit', () => process.exit(1));
globalThis.SCRU64_NODE_SPEC = `${(await once(lease.stdout, 'data'))[0]}`.trim();
