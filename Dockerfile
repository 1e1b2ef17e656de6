# The portal in a small image. See docs/ADMIN.md for how to run it and packaging/compose.yaml for an example.

# Keep the version in step with rust-toolchain.toml. .dockerignore leaves that file out, because it would make cargo
# download rustfmt and clippy, which the image lacks and the build doesn't need.
FROM rust:1.95.0-bookworm AS build
WORKDIR /build
COPY . .
# Templates, style sheets and database migrations are compiled into the program.
RUN cargo build --profile dist --locked --bin portolan

FROM debian:12-slim
# openssh-client: connects to clusters. util-linux: its setsid gives each connection its own session.
# ca-certificates: `portolan doctor` checks the portal's certificate.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates openssh-client util-linux \
    && rm -rf /var/lib/apt/lists/*
# A fixed user ID, so that a folder mounted from the host can be assigned to it: chown 10001:10001.
RUN useradd --system --uid 10001 --home-dir /var/lib/portolan --shell /usr/sbin/nologin portolan \
    && install -d -m 0700 -o portolan -g portolan /var/lib/portolan /run/portolan
COPY --from=build /build/target/dist/portolan /usr/local/bin/portolan

USER portolan
WORKDIR /var/lib/portolan
VOLUME /var/lib/portolan
# A container's loopback address can't be reached from outside. Put a proxy with TLS in front of both ports.
# Sockets of cluster connections are useless to the next container, so they aren't in the volume.
ENV PORTOLAN_DATA_DIR=/var/lib/portolan \
    PORTOLAN_RUN_DIR=/run/portolan \
    PORTOLAN_PORTAL_LISTEN=0.0.0.0:8080 \
    PORTOLAN_DASHBOARDS_LISTEN=0.0.0.0:8081
EXPOSE 8080 8081

# Queries the private /healthz with Bash alone, because the image has no curl. `portolan doctor` isn't used, because it
# also reads the host keys of every cluster, which would be too much twice a minute.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8082 && printf 'GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]

ENTRYPOINT ["portolan"]
CMD ["serve"]
