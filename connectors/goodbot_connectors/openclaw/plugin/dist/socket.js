// SPDX-License-Identifier: Apache-2.0
// HTTP through a Unix socket: `fetch` has no such thing without another package.
import { request } from "node:http";
/** Rejects when nobody listens there, or has not answered within `ms`. */
export function bySocket(socketPath, asked) {
    const { method, path, headers, body, ms } = asked;
    return new Promise((resolve, reject) => {
        const sent = request({ socketPath, method, path, headers, agent: false, signal: AbortSignal.timeout(ms) }, (response) => {
            let said = "";
            response.setEncoding("utf8");
            response.on("data", (part) => {
                said += part;
            });
            response.on("error", reject);
            response.on("end", () => resolve({
                status: response.statusCode ?? 0,
                json: async () => JSON.parse(said),
                text: async () => said,
            }));
        });
        sent.on("error", reject);
        sent.end(body);
    });
}
