# SPDX-License-Identifier: Apache-2.0
# One image for workers and the API: docker build -t rollcall .   What it runs: dist/workers/activation.js unless told otherwise.
# docs/deployment.md says what a container needs so that bubblewrap works in it.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# What runs, as locked: of Codex the pinned one, and its binary for this platform only. No package's script is needed.
RUN npm ci --omit=dev --ignore-scripts && npm cache clean --force

FROM packages AS build
# What builds, at the versions of package.json, in the directory above, where it is found and is not part of the image.
RUN npm install --prefix / --ignore-scripts $(node -p '["typescript", "@types/node", "vite", "preact", "wouter-preact"].map((name) => name + "@" + require("./package.json").devDependencies[name]).join(" ")')
COPY tsconfig.json ./
COPY src src
COPY web web
COPY workers workers
RUN echo '{ "extends": "./tsconfig.json", "compilerOptions": { "noEmit": false, "declaration": false, "sourceMap": false }, "include": ["src", "workers"] }' > tsconfig.image.json \
  && /node_modules/.bin/tsc -p tsconfig.image.json && /node_modules/.bin/vite build web && chmod 0755 dist/src/cli/main.js

FROM ${NODE_IMAGE}
# What the model's commands find is the image's own /usr: name here what your tasks need, e.g. "python3 poppler-utils".
ARG EXTRA_PACKAGES=""
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap ca-certificates tini ${EXTRA_PACKAGES} \
  && rm -rf /var/lib/apt/lists/* \
  && groupadd --gid 10001 rollcall \
  && useradd --uid 10001 --gid 10001 --home-dir /var/lib/rollcall --shell /usr/sbin/nologin rollcall \
  # Volumes that are mounted here begin with these owners.
  && install -d -m 0700 -o rollcall -g rollcall /var/lib/rollcall /artifacts
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
RUN ln -s /app/dist/src/cli/main.js /usr/local/bin/rollcall
# Temporary files go where the room is: a worker takes no session while less than floors.disk_mb is free in either place.
ENV NODE_ENV=production ROLLCALL_STATE_DIR=/var/lib/rollcall TMPDIR=/var/lib/rollcall
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
# Process 1 must reap what sandboxes leave, wherever the image is started without --init.
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["node", "dist/workers/activation.js"]
