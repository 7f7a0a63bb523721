// swift-tools-version: 6.2
import PackageDescription

// The benchmarks, and the product again in release mode. `Shared` and `Plugins` are links to the product's folders, which makes `package`
// declarations visible here. Only the targets that the benchmarks run are listed, with the settings of ../Package.swift.

let common: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
    // Without this, optimized code of Swift 6.3.1 does not return to the caller's actor after some awaits that throw.
    .unsafeFlags(["-Xllvm", "-sil-disable-pass=optimize-hop-to-executor"]),
]
let adapter: [SwiftSetting] = common + [.strictMemorySafety()]

func of(_ package: String, _ names: String...) -> [Target.Dependency] { names.map { .product(name: $0, package: package) } }
let log = of("swift-log", "Logging")

/// Returns a target of the product.
func shared(
    _ name: String, _ dependencies: [Target.Dependency], exclude: [String] = [], resources: [Resource] = [],
    settings: [SwiftSetting] = common
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Shared/\(name)", exclude: exclude, resources: resources, swiftSettings: settings)
}

/// Returns a plugin of the product. A plugin of the benchmarks has its rules in a separate target.
func plugin(_ name: String, rules: String? = nil) -> Target {
    .target(
        name: name,
        dependencies: ["SluicePluginKit", "SluiceValues"] + (rules.map { [.target(name: $0)] } ?? []),
        path: rules == nil ? "Plugins/\(name)" : "Sources/\(name)",
        exclude: rules == nil ? ["README.md"] : [],
        swiftSettings: common,
        linkerSettings: [
            .unsafeFlags([
                "-Xlinker", "-z", "-Xlinker", "defs",
                "-Xlinker", "--version-script=\(Context.packageDirectory)/Plugins/exports.map",
            ])
        ]
    )
}

/// Returns a reference program.
func limit(_ name: String, linking libraries: [String] = []) -> Target {
    .executableTarget(
        name: "limit-\(name)", path: "limits/\(name)", linkerSettings: libraries.map { .linkedLibrary($0) })
}

let package = Package(
    name: "sluice",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "sluice-bench", targets: ["SluiceBench"]),
        .executable(name: "sluice", targets: ["sluice"]),
        .executable(name: "sluice-plugin-host", targets: ["sluice-plugin-host"]),
        .library(name: "AppServicesRules", type: .dynamic, targets: ["AppServicesRules"]),
        .library(name: "RateLimits", type: .dynamic, targets: ["RateLimits"]),
        .library(name: "BenchRows", type: .dynamic, targets: ["BenchRows"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    ],
    targets: [
        .systemLibrary(name: "CIsal", path: "Shared/CIsal", pkgConfig: "libisal", providers: [.apt(["libisal-dev"])]),
        .systemLibrary(name: "CCurl", path: "Shared/CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLibPQ", path: "Shared/CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CRdKafka", path: "Shared/CRdKafka", pkgConfig: "rdkafka", providers: [.apt(["librdkafka-dev"])]),
        .systemLibrary(name: "CZlib", path: "Shared/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CZstd", path: "Shared/CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "CSQLite", path: "Shared/CSQLite", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CSluicePlugin", path: "Shared/CSluicePlugin"),
        .target(name: "CSluiceSandbox", path: "Shared/CSluiceSandbox"),
        .target(name: "CSluiceSpawn", path: "Shared/CSluiceSpawn"),
        .target(name: "CSluiceVFS", dependencies: ["CSQLite"], path: "Shared/CSluiceVFS", linkerSettings: [.linkedLibrary("sqlite3")]),
        shared("SluiceValues", []),
        shared("SluiceCore", ["SluiceValues"]),
        shared("SluicePluginKit", ["SluiceValues", "CSluicePlugin"], settings: adapter),
        shared("SluiceQuery", ["SluiceValues", "SluiceCore"]),
        shared("SluiceMerge", ["SluiceCore"]),
        shared("SluiceWire", ["SluiceValues", "SluiceCore"] + of("swift-protobuf", "SwiftProtobuf"), exclude: ["Protos"]),
        shared("SluiceMatch", ["SluiceCore", "SluiceQuery"]),
        shared("SluicePorts", ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceWire"]),
        shared(
            "SluicePostgres", ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluicePorts", "CLibPQ"] + log, settings: adapter
        ),
        shared("SluiceKafka", ["SluiceCore", "SluicePorts", "CRdKafka"] + log, settings: adapter),
        shared("SluiceEmbeddedLog", ["SluiceCore", "SluicePorts"] + of("swift-collections", "DequeModule")),
        shared("SluiceCompression", ["SluiceCore", "CIsal", "CZlib", "CZstd"], settings: adapter),
        shared(
            "SluicePluginHost", ["SluiceValues", "SluiceCore", "SluicePorts", "CSluicePlugin", "CSluiceSandbox"] + log, settings: adapter),
        shared(
            "SluiceNet",
            ["SluiceValues", "SluiceCore", "SluicePorts"] + log + of("async-http-client", "AsyncHTTPClient")
                + of("swift-nio", "NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket", "NIOFoundationCompat")
                + of("swift-nio-ssl", "NIOSSL") + of("swift-nio-extras", "NIOHTTPTypesHTTP1") + of("swift-http-types", "HTTPTypes")
                + of("hummingbird", "Hummingbird", "HummingbirdCore") + of("swift-service-lifecycle", "ServiceLifecycle")),
        shared("SluiceMail", ["SluiceValues", "SluiceCore", "SluicePorts", "CCurl"] + log, settings: adapter),
        shared(
            "SluiceTracing",
            ["SluiceValues", "SluiceCore"] + log + of("swift-nio", "NIOCore", "NIOHTTP1") + of("async-http-client", "AsyncHTTPClient")
                + of("swift-service-lifecycle", "ServiceLifecycle") + of("swift-distributed-tracing", "Tracing")
                + of("swift-collections", "DequeModule")),
        shared(
            "SluicePipeline",
            ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceWire", "SluiceMatch", "SluicePorts"] + log
                + of("swift-protobuf", "SwiftProtobuf") + of("swift-collections", "DequeModule")),
        shared(
            "SluiceIdentity",
            ["SluiceValues", "SluiceCore", "SluicePorts"] + log + of("jwt-kit", "JWTKit") + of("swift-crypto", "Crypto")),
        shared(
            "SluiceRealm",
            ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluicePorts"] + log + of("swift-collections", "DequeModule")),
        shared(
            "SluiceRealmBridge",
            [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceWire", "SluicePorts", "SluicePipeline", "SluiceRealm",
            ] + log + of("swift-protobuf", "SwiftProtobuf") + of("swift-collections", "DequeModule")),
        shared("SluiceReplica", ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "CSQLite", "CSluiceVFS"]),
        shared(
            "SluiceSync",
            ["SluiceValues", "SluiceCore", "SluiceReplica", "SluiceWire"] + log
                + of("swift-nio", "NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket") + of("swift-nio-ssl", "NIOSSL")
                + of("swift-collections", "DequeModule") + of("swift-crypto", "Crypto")),
        shared(
            "SluiceGateway",
            [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceWire", "SluiceMatch", "SluicePorts",
                "SluiceCompression", "SluicePipeline", "SluiceRealm", "SluiceRealmBridge", "SluiceIdentity", "SluicePostgres",
                "SluiceKafka", "SluiceEmbeddedLog", "SluicePluginHost", "SluiceNet", "SluiceTracing", "SluiceMail",
            ] + log
                + of("hummingbird", "Hummingbird") + of("swift-http-types", "HTTPTypes") + of("swift-nio", "NIOCore")
                + of("swift-service-lifecycle", "ServiceLifecycle") + of("swift-crypto", "Crypto", "CryptoExtras")
                + of("swift-metrics", "CoreMetrics")
                + of("swift-distributed-tracing", "Tracing")),
        shared("SluiceSDK", ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceReplica", "SluiceSync"]),
        shared("RealmSwift", ["SluiceSDK"]),
        shared("SluiceDevServer", ["SluiceValues", "SluiceCore", "SluicePostgres", "CSluiceSpawn"], settings: adapter),
        shared(
            "SluiceTools",
            [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceWire", "SluiceCompression", "SluicePorts", "SluicePostgres",
                "SluicePluginHost",
                "SluiceNet", "SluiceDevServer", "SluiceGateway", "SluiceSync",
            ] + log + of("swift-protobuf", "SwiftProtobuf"),
            resources: [.embedInCode("Plugin/Headers/sluice_plugin.h"), .embedInCode("Plugin/Headers/sluice_rows.h")]),
        .executableTarget(
            name: "sluice",
            dependencies: ["SluiceValues", "SluiceCore", "SluiceGateway", "SluiceTools"] + of("swift-argument-parser", "ArgumentParser"),
            path: "Shared/sluice",
            swiftSettings: common
        ),
        .executableTarget(
            name: "sluice-plugin-host", dependencies: ["SluicePluginHost"], path: "Shared/sluice-plugin-host", swiftSettings: common
        ),
        plugin("AppServicesRules"),
        plugin("RateLimits"),
        .target(name: "BenchRules", dependencies: ["SluicePluginKit"], swiftSettings: common),
        plugin("BenchRows", rules: "BenchRules"),
        // The references, in C.
        limit("wsload", linking: ["z"]),
        limit("wsrv"),
        limit("sqlite", linking: ["sqlite3"]),
        .executableTarget(name: "limit-kafkaproduce", dependencies: ["CRdKafka"], path: "limits/kafkaproduce"),
        .executableTarget(name: "limit-pginsert", dependencies: ["CLibPQ"], path: "limits/pginsert"),
        .executableTarget(
            name: "SluiceBench",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceGateway", "SluiceMatch", "SluiceQuery", "SluicePorts", "SluicePostgres",
                "SluicePluginHost", "SluiceRealm", "SluiceIdentity",
                "SluiceWire", "SluiceReplica", "SluiceSync", "RealmSwift", "CSQLite",
            ]
                + log
                + of("swift-argument-parser", "ArgumentParser")
                + of("swift-protobuf", "SwiftProtobuf") + of("jwt-kit", "JWTKit")
                + of("swift-crypto", "CryptoExtras"),
            swiftSettings: common
        ),
    ],
    swiftLanguageModes: [.v6]
)
