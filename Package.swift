// swift-tools-version: 6.2
import PackageDescription

// One manifest. The two settings lists at the top hold for every target; the order of the targets is the order of the
// layers (docs/decisions/0001-layers.md), lowest first. `dev/check-layers` fails the build when an arrow points up.

/// Settings of every Swift target.
let common: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

/// Settings of the targets that talk to C: each unsafe expression is spelt out.
let adapter: [SwiftSetting] = common + [.strictMemorySafety()]

/// Settings of the examples: what an app developer's package has.
let example: [SwiftSetting] = [.treatAllWarnings(as: .error)]

/// Swift 6.3.1, optimizing, drops the hop back to the caller's actor behind a tail call of a throwing continuation in
/// nonsending functions (docs/decisions/0004-hop-to-executor.md). The gateway's modules are built without that pass. The
/// SDK's cannot be, as packages with unsafe flags are no dependencies: there such continuations return a `Result`.
let server: [SwiftSetting] = [
    .unsafeFlags(["-Xllvm", "-sil-disable-pass=optimize-hop-to-executor"], .when(configuration: .release))
]

/// Settings of the lowest targets. dev/run-tests sets the variable in continuous integration, whose build no debugger reads: unoptimized,
/// their generic code takes a large part of the time of all tests. Assertions stay.
let lowest: [SwiftSetting] =
    Context.environment["SLUICE_TEST_OPTIMIZED"] == nil
    ? common : common + [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]

func nio(_ name: String) -> Target.Dependency { .product(name: name, package: "swift-nio") }

/// A library that only the gateway, the programs and the tests use. An app that embeds the SDK with `traits: []` neither resolves nor
/// builds its package (docs/decisions/0016-traits.md).
func gatewayLibrary(_ name: String, of package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: ["Gateway"]))
}

/// A library of the system that only the gateway uses. SwiftPM looks for it even if the app builds no target that links it.
func gatewayLibrary(_ name: String) -> Target.Dependency { .target(name: name, condition: .when(traits: ["Gateway"])) }

/// A symbol that is missing is an error of the build. With a sanitizer (`dev/asan`) its functions come from the program that loads the
/// plugin.
let complete = Context.environment["SLUICE_ASAN"] == nil ? ["-Xlinker", "-z", "-Xlinker", "defs"] : []

/// A rule plugin: a shared library that exports its entry and nothing else.
func plugin(_ name: String, dependencies: [Target.Dependency], folder: String = "Plugins") -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: "\(folder)/\(name)",
        exclude: ["README.md"],
        swiftSettings: common,
        linkerSettings: [
            .unsafeFlags(complete + ["-Xlinker", "--version-script=\(Context.packageDirectory)/Plugins/exports.map"])
        ]
    )
}

/// The plugins of the tests. SwiftPM links a library only if it is a product. dev/run-tests sets the variable, so no app sees them.
let testPlugins = Context.environment["SLUICE_TEST_PLUGINS"] == nil ? [] : ["FaultyC", "OtherVersionC", "MinorZeroC", "FrontDesk"]

func tests(_ name: String, dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: "\(name)Tests", dependencies: dependencies, swiftSettings: common)
}

let package = Package(
    name: "sluice",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .executable(name: "sluice", targets: ["sluice"]),
        .executable(name: "sluice-plugin-host", targets: ["sluice-plugin-host"]),
        .library(name: "RealmSwift", targets: ["RealmSwift"]),
        .library(name: "SluiceSDK", targets: ["SluiceSDK"]),
        .library(name: "SluicePluginKit", targets: ["SluicePluginKit"]),
        .library(name: "AppServicesRules", type: .dynamic, targets: ["AppServicesRules"]),
        .library(name: "WeatherIngest", type: .dynamic, targets: ["WeatherIngest"]),
        .library(name: "RateLimits", type: .dynamic, targets: ["RateLimits"]),
        .library(name: "FieldRedaction", type: .dynamic, targets: ["FieldRedaction"]),
        .library(name: "AuditTrail", type: .dynamic, targets: ["AuditTrail"]),
        .library(name: "FreezeC", type: .dynamic, targets: ["FreezeC"]),
        .library(name: "DenyAllC", type: .dynamic, targets: ["DenyAllC"]),
        .executable(name: "airport-ops", targets: ["AirportOps"]),
    ] + testPlugins.map { .library(name: $0, type: .dynamic, targets: [$0]) },
    traits: [
        .default(enabledTraits: ["Gateway"]),
        .trait(name: "Gateway", description: "The dependencies of the gateway, the command line and the tests."),
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
        // Layer 0: C
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CIsal", pkgConfig: "libisal", providers: [.apt(["libisal-dev"])]),
        .systemLibrary(name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CRdKafka", pkgConfig: "rdkafka", providers: [.apt(["librdkafka-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        // Without pkg-config, which would find another SQLite than the SDK's on a Mac with Homebrew.
        .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CSluicePlugin"),
        .target(name: "CSluiceSandbox"),
        .target(name: "CSluiceSpawn"),
        .target(name: "CSluiceVFS", dependencies: ["CSQLite"], linkerSettings: [.linkedLibrary("sqlite3")]),

        // Layer 0: forms of values, shared by the product and its plugins
        .target(name: "SluiceValues", swiftSettings: lowest),

        // Layer 1: the words of every other layer
        .target(name: "SluiceCore", dependencies: ["SluiceValues"], swiftSettings: lowest),
        .target(name: "SluicePluginKit", dependencies: ["SluiceValues", "CSluicePlugin"], swiftSettings: adapter),

        // Layer 2: pure algorithms
        .target(name: "SluiceQuery", dependencies: ["SluiceValues", "SluiceCore"], swiftSettings: common),
        .target(name: "SluiceMerge", dependencies: ["SluiceCore"], swiftSettings: common),
        .target(
            name: "SluiceWire",
            dependencies: ["SluiceValues", "SluiceCore", .product(name: "SwiftProtobuf", package: "swift-protobuf")],
            exclude: ["Protos"],
            swiftSettings: lowest
        ),

        // Layer 3
        .target(name: "SluiceMatch", dependencies: ["SluiceCore", "SluiceQuery"], swiftSettings: common),

        // Layer 4: the ports of the pipeline and the values that cross them
        .target(
            name: "SluicePorts", dependencies: ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceWire"],
            swiftSettings: common + server
        ),

        // Layer 5: adapters, one outside system each
        .target(
            name: "SluiceCompression",
            dependencies: ["SluiceCore", gatewayLibrary("CIsal"), gatewayLibrary("CZlib"), gatewayLibrary("CZstd")],
            swiftSettings: adapter + server),
        .target(
            name: "SluicePostgres",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluicePorts", gatewayLibrary("CLibPQ"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: adapter + server
        ),
        .target(
            name: "SluiceKafka",
            dependencies: ["SluiceCore", "SluicePorts", gatewayLibrary("CRdKafka"), .product(name: "Logging", package: "swift-log")],
            swiftSettings: adapter + server
        ),
        .target(
            name: "SluiceEmbeddedLog",
            dependencies: ["SluiceCore", "SluicePorts", .product(name: "DequeModule", package: "swift-collections")],
            swiftSettings: common + server
        ),
        .target(
            name: "SluicePluginHost",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePorts", "CSluicePlugin", "CSluiceSandbox",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: adapter + server
        ),
        .target(
            name: "SluiceNet",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePorts",
                nio("NIOCore"), nio("NIOPosix"), nio("NIOTLS"), nio("NIOHTTP1"), nio("NIOWebSocket"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                gatewayLibrary("AsyncHTTPClient", of: "async-http-client"),
                gatewayLibrary("NIOHTTPTypesHTTP1", of: "swift-nio-extras"),
                gatewayLibrary("HTTPTypes", of: "swift-http-types"),
                gatewayLibrary("Hummingbird", of: "hummingbird"),
                gatewayLibrary("HummingbirdCore", of: "hummingbird"),
                gatewayLibrary("ServiceLifecycle", of: "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: common + server
        ),

        .target(
            name: "SluiceTracing",
            dependencies: [
                "SluiceValues", "SluiceCore",
                nio("NIOCore"), nio("NIOHTTP1"),
                gatewayLibrary("AsyncHTTPClient", of: "async-http-client"),
                gatewayLibrary("ServiceLifecycle", of: "swift-service-lifecycle"),
                gatewayLibrary("Tracing", of: "swift-distributed-tracing"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: common + server
        ),
        .target(
            name: "SluiceMail",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePorts", gatewayLibrary("CCurl"), .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: adapter + server
        ),

        // Layer 5: the server of development and tests, on the adapter of PostgreSQL
        .target(
            name: "SluiceDevServer", dependencies: ["SluiceValues", "SluiceCore", "SluicePostgres", "CSluiceSpawn"],
            swiftSettings: adapter + server
        ),

        // Layer 6: what the project is for
        .target(
            name: "SluicePipeline",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceWire", "SluiceMatch", "SluicePorts",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: common + server
        ),
        // Providers and the tokens of other issuers, functions and events.
        .target(
            name: "SluiceIdentity",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePorts",
                gatewayLibrary("JWTKit", of: "jwt-kit"), gatewayLibrary("Crypto", of: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: common + server
        ),
        // Realm's sync protocol: changesets, schemas, queries, and the session of an unmodified client.
        .target(
            name: "SluiceRealm",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluicePorts",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: common + server
        ),
        .target(
            name: "SluiceReplica",
            dependencies: ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "CSQLite", "CSluiceVFS"],
            swiftSettings: common
        ),
        .target(
            name: "SluiceSync",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceReplica", "SluiceWire",
                nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1"), nio("NIOWebSocket"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                // On Apple's platforms, CryptoKit is part of the system.
                .product(name: "Crypto", package: "swift-crypto", condition: .when(platforms: [.linux, .android, .windows])),
            ],
            swiftSettings: common
        ),

        // Layer 7
        // Client files of Realm's protocol, served by sessions of the pipeline.
        .target(
            name: "SluiceRealmBridge",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceWire", "SluicePorts", "SluicePipeline", "SluiceRealm",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: common + server
        ),
        .target(
            name: "SluiceGateway",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceWire", "SluicePorts",
                "SluicePipeline", "SluiceRealm", "SluiceRealmBridge", "SluiceIdentity", "SluicePostgres", "SluiceKafka",
                "SluiceEmbeddedLog",
                "SluicePluginHost", "SluiceNet", "SluiceCompression", "SluiceTracing", "SluiceMail",
                gatewayLibrary("Hummingbird", of: "hummingbird"),
                gatewayLibrary("HTTPTypes", of: "swift-http-types"),
                nio("NIOCore"),
                gatewayLibrary("ServiceLifecycle", of: "swift-service-lifecycle"),
                gatewayLibrary("Crypto", of: "swift-crypto"),
                gatewayLibrary("CryptoExtras", of: "swift-crypto"),
                gatewayLibrary("CoreMetrics", of: "swift-metrics"),
                gatewayLibrary("Tracing", of: "swift-distributed-tracing"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: common + server
        ),
        .target(
            name: "SluiceSDK",
            dependencies: ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceReplica", "SluiceSync"],
            swiftSettings: common
        ),

        // Layer 8: what the commands do, the programs, and the name that apps import
        .target(
            name: "SluiceTools",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceWire", "SluiceCompression", "SluicePorts", "SluicePostgres",
                "SluiceKafka", "SluicePluginHost",
                "SluiceNet", "SluiceDevServer", "SluiceGateway", "SluiceSync",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                .product(name: "Logging", package: "swift-log"),
            ],
            // `sluice plugin new` writes them. Each is a symbolic link to the header of CSluicePlugin, so there is one copy.
            resources: [
                .embedInCode("Plugin/Headers/sluice_plugin.h"), .embedInCode("Plugin/Headers/sluice_rows.h"),
            ],
            swiftSettings: common + server
        ),
        .executableTarget(
            name: "sluice",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceGateway", "SluiceTools",
                gatewayLibrary("ArgumentParser", of: "swift-argument-parser"),
            ],
            swiftSettings: common + server
        ),
        .executableTarget(
            name: "sluice-plugin-host", dependencies: ["SluicePluginHost"], swiftSettings: common
        ),
        .target(name: "RealmSwift", dependencies: ["SluiceSDK"], swiftSettings: common),

        // Plugins: everybody's way in, ours included
        plugin("AppServicesRules", dependencies: ["SluicePluginKit", "SluiceValues"]),
        plugin("WeatherIngest", dependencies: ["SluicePluginKit"]),
        plugin("RateLimits", dependencies: ["SluicePluginKit"]),
        plugin("FieldRedaction", dependencies: ["SluicePluginKit"]),
        plugin("AuditTrail", dependencies: ["SluicePluginKit"]),
        plugin("FreezeC", dependencies: ["CSluicePlugin"]),
        plugin("DenyAllC", dependencies: ["CSluicePlugin"]),
        // What the tests of the plugin host need: one that misbehaves on demand, one of another major version of the ABI, one of its first
        // minor version, and one with functions of an app.
        plugin("FaultyC", dependencies: ["CSluicePlugin"], folder: "Tests/Plugins"),
        plugin("OtherVersionC", dependencies: ["CSluicePlugin"], folder: "Tests/Plugins"),
        plugin("MinorZeroC", dependencies: ["CSluicePlugin"], folder: "Tests/Plugins"),
        plugin("FrontDesk", dependencies: ["SluicePluginKit"], folder: "Tests/Plugins"),

        // The demo: an app's models, the scene with its servers, and the program
        .target(
            name: "AirportOpsModels", dependencies: ["RealmSwift"], path: "Examples/AirportOps/Models", swiftSettings: example
        ),
        .target(
            name: "AirportOpsScene",
            dependencies: [
                "AirportOpsModels", "RealmSwift", "SluiceCore", "SluicePostgres", "SluiceKafka", "SluiceRealm", "RealmTestClient",
                gatewayLibrary("JWTKit", of: "jwt-kit"), .product(name: "Logging", package: "swift-log"),
            ],
            path: "Examples/AirportOps/Scene",
            swiftSettings: example
        ),
        .executableTarget(
            name: "AirportOps", dependencies: ["AirportOpsScene"], path: "Examples/AirportOps/Demo", swiftSettings: example
        ),

        // The program of docs/tutorial.md
        .executableTarget(name: "team-tasks", dependencies: ["RealmSwift"], path: "Examples/TeamTasks", swiftSettings: example),

        // What several test targets use, one target for each layer: a test target waits only for the modules that it tests
        .target(
            name: "TestSupport", dependencies: ["SluiceValues", "SluiceCore", "CSQLite"], path: "Tests/Support", swiftSettings: common),
        .target(
            name: "QueryTestSupport", dependencies: ["SluiceCore", "SluiceQuery", "TestSupport"], path: "Tests/QueryTestSupport",
            swiftSettings: common),
        .target(
            name: "PortsTestSupport", dependencies: ["SluiceCore", "SluicePorts", "TestSupport"], path: "Tests/PortsTestSupport",
            swiftSettings: common),
        .target(
            name: "TracingTestSupport", dependencies: [nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1")], path: "Tests/TracingTestSupport",
            swiftSettings: common),
        .target(
            name: "NetTestSupport",
            dependencies: [nio("NIOCore"), nio("NIOPosix"), .product(name: "NIOSSL", package: "swift-nio-ssl")],
            path: "Tests/NetTestSupport", swiftSettings: common),
        .target(
            name: "MailTestSupport", dependencies: ["TestSupport"], path: "Tests/MailTestSupport", exclude: ["mail_server.py"],
            swiftSettings: common),
        .target(
            name: "ReplicaTestSupport", dependencies: ["SluiceCore", "SluiceReplica"], path: "Tests/ReplicaTestSupport",
            swiftSettings: common),
        .target(
            name: "IdentityTestSupport",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePorts", nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1"),
                gatewayLibrary("Crypto", of: "swift-crypto"),
                gatewayLibrary("CryptoExtras", of: "swift-crypto"),
            ],
            path: "Tests/IdentityTestSupport", swiftSettings: common),
        .target(
            name: "RealmTestSupport", dependencies: ["SluiceValues", "SluiceCore", "SluicePorts", "SluiceRealm"],
            path: "Tests/RealmTestSupport", swiftSettings: common),
        .target(
            name: "RealmTestClient",
            dependencies: [
                "SluiceCore", "SluicePorts", "SluiceRealm", "SluiceCompression", "SluiceSync", "TestSupport", "RealmTestSupport",
            ],
            path: "Tests/RealmClient", swiftSettings: common),
        .target(
            name: "GatewayTestSupport",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceWire", "SluicePorts", "SluicePostgres", "SluiceKafka", "SluicePipeline", "SluiceSync",
                "SluiceGateway", "SluiceSDK", "TestSupport",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"), .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"), nio("NIOPosix"), .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            path: "Tests/GatewayTestSupport", swiftSettings: common),
        tests("SluiceValues", dependencies: ["SluiceValues", "TestSupport"]),
        tests("SluiceCore", dependencies: ["SluiceValues", "SluiceCore", "TestSupport"]),
        tests("SluiceQuery", dependencies: ["SluiceValues", "SluiceCore", "SluiceQuery", "TestSupport", "QueryTestSupport"]),
        tests("SluiceMatch", dependencies: ["SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMatch", "TestSupport"]),
        tests("SluiceMerge", dependencies: ["SluiceValues", "SluiceCore", "SluiceMerge", "SluiceWire", "TestSupport"]),
        tests(
            "SluiceWire",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceWire", .product(name: "SwiftProtobuf", package: "swift-protobuf"), "TestSupport",
            ]),
        tests(
            "SluicePostgres",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceDevServer", "SluiceQuery", "SluiceMerge", "SluicePorts", "SluicePostgres",
                "TestSupport", "QueryTestSupport", "PortsTestSupport", .product(name: "Logging", package: "swift-log"),
            ]),
        tests("SluiceDevServer", dependencies: ["SluiceCore", "SluiceDevServer", "SluicePostgres", "TestSupport"]),
        tests(
            "SluicePorts",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePorts", "SluiceWire", .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                "TestSupport",
            ]),
        tests(
            "SluiceKafka",
            dependencies: [
                "SluiceCore", "SluiceKafka", "SluiceEmbeddedLog", "SluicePorts", gatewayLibrary("CRdKafka"),
                .product(name: "Logging", package: "swift-log"), "TestSupport",
            ]),
        tests("SluiceEmbeddedLog", dependencies: ["SluiceCore", "SluiceEmbeddedLog", "SluicePorts"]),
        // The plugin host on a kernel that lacks a part of the sandbox.
        .executableTarget(name: "old-kernel", dependencies: ["CSluiceSandbox"], path: "Tests/Programs/OldKernel"),
        tests(
            "SluicePluginHost",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePluginHost", "SluicePluginKit", "SluicePorts", "CSluicePlugin", "old-kernel",
                .product(name: "Logging", package: "swift-log"),
                "TestSupport",
            ]),
        tests(
            "SluiceTracing",
            dependencies: [
                "SluiceCore", "SluiceTracing", "SluiceValues",
                gatewayLibrary("Tracing", of: "swift-distributed-tracing"), .product(name: "Logging", package: "swift-log"),
                "TracingTestSupport",
            ]),
        tests(
            "SluiceMail",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePorts", "SluiceMail", .product(name: "Logging", package: "swift-log"), "TestSupport",
                "MailTestSupport",
            ]),
        tests("SluiceCompression", dependencies: ["SluiceCore", "SluiceCompression", "TestSupport"]),
        tests("SluicePluginKit", dependencies: ["SluicePluginKit", "CSluicePlugin", "TestSupport"]),
        tests(
            "AppServicesRules",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluicePluginHost", "SluicePorts",
                .product(name: "Logging", package: "swift-log"),
                "TestSupport",
            ]),
        tests(
            "ShippedPlugins",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePluginHost", "SluicePorts", .product(name: "Logging", package: "swift-log"),
                "TestSupport",
            ]),
        tests(
            "WeatherIngest",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePluginHost", "SluicePorts", .product(name: "Logging", package: "swift-log"),
            ]),
        tests(
            "SluiceNet",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePorts", "SluiceNet", nio("NIOCore"), nio("NIOPosix"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                gatewayLibrary("Hummingbird", of: "hummingbird"), gatewayLibrary("HTTPTypes", of: "swift-http-types"),
                gatewayLibrary("ServiceLifecycle", of: "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
                "TestSupport", "NetTestSupport",
            ]),
        tests(
            "SluicePipeline",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceWire", "SluicePorts", "SluiceEmbeddedLog",
                "SluicePipeline",
                "TestSupport",
            ]),
        tests(
            "SluiceIdentity",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluicePorts", "SluiceIdentity", "TestSupport", "IdentityTestSupport",
                .product(name: "Logging", package: "swift-log"),
            ]),
        tests(
            "SluiceRealm",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluicePorts", "SluiceRealm", "TestSupport", "PortsTestSupport",
                "RealmTestSupport",
            ]),
        tests(
            "SluiceRealmBridge",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceWire", "SluicePorts", "SluicePipeline", "SluiceRealm",
                "SluiceRealmBridge", "SluiceEmbeddedLog", .product(name: "Logging", package: "swift-log"),
                .product(name: "DequeModule", package: "swift-collections"), .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                "TestSupport", "PortsTestSupport", "RealmTestSupport",
            ]),
        // The other process in tests of files that several share, and the one that is killed.
        .executableTarget(
            name: "replica-writer", dependencies: ["SluiceCore", "SluiceReplica"], path: "Tests/Programs/ReplicaWriter",
            swiftSettings: common),
        tests(
            "SluiceReplica",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluiceReplica", "replica-writer", "TestSupport",
                "QueryTestSupport", "ReplicaTestSupport",
            ]),
        tests(
            "SluiceSync",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceMerge", "SluicePipeline", "SluiceReplica", "SluiceSync", "SluiceWire",
                nio("NIOCore"), nio("NIOEmbedded"), nio("NIOPosix"), nio("NIOHTTP1"), nio("NIOWebSocket"),
                "TestSupport",
            ]),
        // An app's calls at the top level of its program.
        .executableTarget(
            name: "app-at-top-level", dependencies: ["RealmSwift"], path: "Tests/Programs/AppAtTopLevel",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        tests(
            "SluiceSDK",
            dependencies: [
                "SluiceSDK", "RealmSwift", "SluiceValues", "SluiceCore", "SluiceMerge", "SluiceReplica", "SluiceSync", "app-at-top-level",
                "TestSupport", "ReplicaTestSupport",
            ]),
        // A device of the causal test, and one in a process of its own.
        .executableTarget(
            name: "register-client", dependencies: ["RealmSwift"], path: "Tests/Programs/RegisterClient",
            swiftSettings: [.swiftLanguageMode(.v6)]),
        tests(
            "SluiceGateway",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceWire", "SluicePorts", "SluiceCompression", "SluicePostgres", "SluiceKafka",
                "SluiceEmbeddedLog", "SluicePluginHost", "SluiceNet", "SluiceDevServer", "SluicePipeline", "SluiceRealm", "SluiceIdentity",
                "SluiceGateway", "SluiceTools", "SluiceMail", "SluiceSDK", "IdentityTestSupport",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
                gatewayLibrary("Hummingbird", of: "hummingbird"), gatewayLibrary("HTTPTypes", of: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"), nio("NIOCore"), gatewayLibrary("Crypto", of: "swift-crypto"),
                gatewayLibrary("CoreMetrics", of: "swift-metrics"),
                "TestSupport", "PortsTestSupport", "TracingTestSupport", "RealmTestSupport", "RealmTestClient", "GatewayTestSupport",
                "NetTestSupport", "MailTestSupport",
            ]),
        // The acceptance scenarios.
        tests(
            "SluiceScenario",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceWire", "SluicePorts", "SluicePostgres", "SluiceKafka", "SluiceNet", "SluiceDevServer",
                "SluicePipeline", "SluiceRealm", "SluiceReplica", "SluiceSync", "SluiceGateway", "SluiceSDK", "SluiceTools",
                "IdentityTestSupport",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"), .product(name: "Logging", package: "swift-log"),
                nio("NIOCore"), nio("NIOPosix"), .product(name: "NIOSSL", package: "swift-nio-ssl"),
                "TestSupport", "RealmTestSupport", "RealmTestClient", "GatewayTestSupport", "NetTestSupport", "register-client",
            ]),
        // Random apps.
        tests(
            "SluiceOracle",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceQuery", "SluiceMerge", "SluicePostgres", "SluiceKafka", "SluicePipeline",
                "SluicePorts", "SluiceRealm", "SluiceReplica", "SluiceSync", "SluiceGateway", "SluiceSDK", "TestSupport",
                "RealmTestSupport", "RealmTestClient", "GatewayTestSupport",
            ]),
        tests(
            "SluiceTools",
            dependencies: [
                "SluiceValues", "SluiceCore", "SluiceWire", "SluiceCompression", "SluicePorts", "SluicePostgres", "SluiceKafka",
                "SluiceNet", "SluicePluginHost", "SluiceGateway", "SluiceSync", "SluiceTools", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ]),
        tests(
            "EndToEnd",
            dependencies: [
                "AirportOpsModels", "AirportOpsScene", "RealmSwift", "SluiceValues", "SluiceCore", "SluiceCompression", "SluiceDevServer",
                "SluiceKafka", "SluicePorts",
                "SluicePostgres", "CSluiceSpawn", "register-client",
                .product(name: "Logging", package: "swift-log"),
                "TestSupport",
            ]),
    ],
    swiftLanguageModes: [.v6]
)
