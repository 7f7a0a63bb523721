# syntax=docker/dockerfile:1
# The gateway: `docker compose up` builds it and starts it with PostgreSQL and Kafka beside it.

# The toolchain by its release, and the base by the digest of its index, which has an image for each processor. A newer base is a change of
# this file. Another registry, or another digest of the toolchain: --build-arg.
ARG SWIFT_IMAGE=swift:6.3.1-bookworm
ARG BASE_IMAGE=debian:bookworm-20261005-slim@sha256:7c7b2c966bc9ee8cedfeef67e0e279108992c77681fa595db4a9d65c06ccc587

FROM ${SWIFT_IMAGE} AS build
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        libcurl4-openssl-dev libisal-dev libpq-dev librdkafka-dev libsqlite3-dev libssl-dev libzstd-dev pkg-config zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
# The dependencies first, so that a change of ours does not fetch them again.
COPY Package.swift ./
RUN swift package resolve
COPY . .
RUN for product in sluice sluice-plugin-host AppServicesRules WeatherIngest RateLimits FieldRedaction AuditTrail FreezeC; do \
        swift build -c release --product "$product" || exit 1; \
    done
# Programs and plugins share one Swift runtime: each of its own would be 60 MB for the gateway and 8 MB for a plugin.
RUN install -d /image/bin /image/lib/sluice/plugins \
    && install .build/release/sluice .build/release/sluice-plugin-host /image/bin/ \
    && for product in AppServicesRules WeatherIngest RateLimits FieldRedaction AuditTrail FreezeC; do \
        install -m 644 ".build/release/lib$product.so" /image/lib/sluice/plugins/ || exit 1; \
    done \
    && ldd /image/bin/* /image/lib/sluice/plugins/*.so | sed -n 's,.* => \(/.*/swift/linux/[^ ]*\) .*,\1,p' | sort -u \
        | xargs -I '{}' install -m 644 '{}' /image/lib/ \
    && test -f /image/lib/libswiftCore.so \
    && install -D -m 644 "$(dirname "$(readlink -f "$(command -v swift)")")/../share/swift/LICENSE.txt" /image/share/doc/sluice/swift/LICENSE.txt \
    && dev/install-manual .build/release/sluice /image \
    && install -D -m 644 LICENSE /image/share/doc/sluice/LICENSE \
    && for package in .build/checkouts/*/; do \
        folder=/image/share/doc/sluice/$(basename "$package"); \
        install -d "$folder" || exit 1; \
        find "$package" -maxdepth 1 -type f \( -iname 'LICEN[CS]E*' -o -iname 'NOTICE*' \) -exec install -m 644 {} "$folder/" \; ; \
    done \
    && strip /image/bin/* \
    && strip --strip-unneeded /image/lib/*.so /image/lib/sluice/plugins/* \
    && find .build/release/ -maxdepth 1 -name '*.resources' -exec cp -R {} /image/bin/ \;

FROM ${BASE_IMAGE}
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates curl libcurl4 libisal2 libpq5 librdkafka1 libsqlite3-0 libssl3 libstdc++6 libzstd1 tini tzdata zlib1g \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/sluice --create-home --shell /usr/sbin/nologin sluice
COPY --from=build /image/ /usr/local/
# Makes the runtime known, and proves at build time that the image holds every library that the programs and plugins ask for.
RUN ldconfig && ! ldd /usr/local/bin/sluice /usr/local/bin/sluice-plugin-host /usr/local/lib/sluice/plugins/*.so | grep 'not found'
USER sluice
WORKDIR /var/lib/sluice
EXPOSE 8090 8091
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=6 \
    CMD curl --fail --silent --show-error --max-time 2 --fail-early http://127.0.0.1:8091/health http://127.0.0.1:8090/health >/dev/null || exit 1
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/sluice"]
CMD ["serve", "--app", "/app", "--host", "0.0.0.0", "--port", "8090", "--admin-port", "8091"]
