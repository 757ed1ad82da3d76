//! Events about objects, for people to read.
